/* VOPC: compares. A NaN operand makes ordered compares false and negated compares true. */
#include "families.h"
#include "lanes.h"
#include "operand.h"

#define COMPARE(name, A, expr)                                                                     \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t r[LANES];                                                                         \
        const uint32_t *pa = o->a, *pb = o->b;                                                     \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            __auto_type b = LOAD_##A(pb);                                                          \
            r[l] = (expr) ? UINT32_MAX : 0;                                                        \
        }                                                                                          \
        o->out = softgpu_gather_mask(r);                                                           \
    }

static void never(struct lanes *o) {
    o->out = 0;
}
static void always(struct lanes *o) {
    o->out = UINT64_MAX;
}

#define COMPARES_F(t, T)                                                                           \
    COMPARE(cmp_lt_##t, T, a < b)                                                                  \
    COMPARE(cmp_eq_##t, T, a == b)                                                                 \
    COMPARE(cmp_le_##t, T, a <= b)                                                                 \
    COMPARE(cmp_gt_##t, T, a > b)                                                                  \
    COMPARE(cmp_lg_##t, T, (a < b) | (a > b))                                                      \
    COMPARE(cmp_ge_##t, T, a >= b)                                                                 \
    COMPARE(cmp_o_##t, T, (a == a) & (b == b))                                                     \
    COMPARE(cmp_u_##t, T, (a != a) | (b != b))                                                     \
    COMPARE(cmp_nge_##t, T, !(a >= b))                                                             \
    COMPARE(cmp_nlg_##t, T, !((a < b) | (a > b)))                                                  \
    COMPARE(cmp_ngt_##t, T, !(a > b))                                                              \
    COMPARE(cmp_nle_##t, T, !(a <= b))                                                             \
    COMPARE(cmp_neq_##t, T, a != b)                                                                \
    COMPARE(cmp_nlt_##t, T, !(a < b))

#define COMPARES_I(t, T)                                                                           \
    COMPARE(cmp_lt_##t, T, a < b)                                                                  \
    COMPARE(cmp_eq_##t, T, a == b)                                                                 \
    COMPARE(cmp_le_##t, T, a <= b)                                                                 \
    COMPARE(cmp_gt_##t, T, a > b)                                                                  \
    COMPARE(cmp_ne_##t, T, a != b)                                                                 \
    COMPARE(cmp_ge_##t, T, a >= b)

COMPARES_F(f16, F16)
COMPARES_F(f32, F32)
COMPARES_F(f64, F64)
COMPARES_I(i16, I16)
COMPARES_I(u16, U16)
COMPARES_I(i32, I32)
COMPARES_I(u32, U32)
COMPARES_I(i64, I64)
COMPARES_I(u64, U64)

/* Returns a number's class as one set bit, in this order: signalling NaN, quiet NaN, -inf, -normal,
 * -denormal, -0, +0, +denormal, +normal, +inf. `exponent` is the mask of the exponent's bits;
 * `quiet` is the highest bit of the mantissa. */
static inline uint32_t class_of(uint64_t magnitude, bool negative, uint64_t exponent,
                                uint64_t quiet) {
    if (magnitude > exponent)
        return magnitude & quiet ? 2 : 1;
    unsigned kind = magnitude == exponent ? 0 : magnitude & exponent ? 1 : magnitude ? 2 : 3;
    return negative ? 4u << kind : 0x200u >> kind;
}

#define CLASS(name, A, MAGNITUDE, SIGN, EXPONENT, QUIET)                                           \
    static void name(struct lanes *o) {                                                            \
        for (int l = 0; l < LANES; l++) {                                                          \
            uint64_t a = LOAD_##A(o->a);                                                           \
            uint32_t c = class_of(a & (MAGNITUDE), a >> (SIGN) & 1, EXPONENT, QUIET);              \
            o->out |= (uint64_t)((c & o->b[l]) != 0) << l;                                         \
        }                                                                                          \
    }

CLASS(cmp_class_f16, U16, 0x7fff, 15, 0x7c00, 0x200)
CLASS(cmp_class_f32, U32, 0x7fffffff, 31, 0x7f800000, 0x400000)
CLASS(cmp_class_f64, U64, INT64_MAX, 63, 0x7ff0000000000000, 0x8000000000000)

#define cmp_f_f16 never
#define cmp_f_f32 never
#define cmp_f_f64 never
#define cmp_f_i16 never
#define cmp_f_u16 never
#define cmp_f_i32 never
#define cmp_f_u32 never
#define cmp_f_i64 never
#define cmp_f_u64 never
#define cmp_tru_f16 always
#define cmp_tru_f32 always
#define cmp_tru_f64 always
#define cmp_t_i16 always
#define cmp_t_u16 always
#define cmp_t_i32 always
#define cmp_t_u32 always
#define cmp_t_i64 always
#define cmp_t_u64 always

static const struct row rows[] = {
#define ROW VROW
#include "vopc.def"
#undef ROW
};

const struct rows softgpu_rows_vopc = FAMILY(rows);
