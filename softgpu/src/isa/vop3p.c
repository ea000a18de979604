/* Implements VOP3P: packed arithmetic on two halves or two words, dot products, and mixed
 * precision. The handler has already moved the selected halves into place. */
#include "arith.h"
#include "families.h"

#define LO(x) ((x) & 0xffff)
#define HI(x) ((x) >> 16)
#define SLO(x) ((int32_t)(int16_t)(x))
#define SHI(x) ((int32_t)(x) >> 16)
#define PACK(lo, hi) (((uint32_t)(lo) & 0xffff) | (uint32_t)(hi) << 16)

#define PK2(name, lo, hi) OP2(name, B32, B32, B32, PACK(lo, hi))
#define PK2_SAT(name, lo, hi, f)                                                                   \
    SATURATING2(name, B32, B32, B32, PACK(lo, hi), PACK(f((int32_t)(lo)), f((int32_t)(hi))))
#define PK3_SAT(name, lo, hi, f)                                                                   \
    SATURATING3(name, B32, B32, B32, B32, PACK(lo, hi), PACK(f(lo), f(hi)))

static inline uint32_t saturate_wide_u16(uint32_t x) {
    return x > 65535 ? 65535 : x;
}

PK3_SAT(pk_mad_i16, SLO(a) * SLO(b) + SLO(c), SHI(a) * SHI(b) + SHI(c), saturate_i16)
PK3_SAT(pk_mad_u16, LO(a) * LO(b) + LO(c), HI(a) * HI(b) + HI(c), saturate_wide_u16)
PK2(pk_mul_lo_u16, LO(a) * LO(b), HI(a) * HI(b))
PK2_SAT(pk_add_i16, SLO(a) + SLO(b), SHI(a) + SHI(b), saturate_i16)
PK2_SAT(pk_sub_i16, SLO(a) - SLO(b), SHI(a) - SHI(b), saturate_i16)
PK2_SAT(pk_add_u16, LO(a) + LO(b), HI(a) + HI(b), saturate_u16)
PK2_SAT(pk_sub_u16, LO(a) - LO(b), HI(a) - HI(b), saturate_u16)
PK2(pk_lshlrev_b16, LO(b) << (a & 15), HI(b) << (a >> 16 & 15))
PK2(pk_lshrrev_b16, LO(b) >> (a & 15), HI(b) >> (a >> 16 & 15))
PK2(pk_ashrrev_i16, SLO(b) >> (a & 15), SHI(b) >> (a >> 16 & 15))
PK2(pk_max_i16, SLO(a) > SLO(b) ? SLO(a) : SLO(b), SHI(a) > SHI(b) ? SHI(a) : SHI(b))
PK2(pk_min_i16, SLO(a) < SLO(b) ? SLO(a) : SLO(b), SHI(a) < SHI(b) ? SHI(a) : SHI(b))
PK2(pk_max_u16, LO(a) > LO(b) ? LO(a) : LO(b), HI(a) > HI(b) ? HI(a) : HI(b))
PK2(pk_min_u16, LO(a) < LO(b) ? LO(a) : LO(b), HI(a) < HI(b) ? HI(a) : HI(b))

#define FLO(x) f16_of((uint16_t)(x))
#define FHI(x) f16_of((uint16_t)((x) >> 16))
#define FPACK(lo, hi) PACK(bits_of_f16(lo), bits_of_f16(hi))

OP3(pk_fma_f16, B32, B32, B32, B32, pk_fma(a, b, c))
OP2(pk_add_f16, B32, B32, B32, FPACK(FLO(a) + FLO(b), FHI(a) + FHI(b)))
OP2(pk_mul_f16, B32, B32, B32, FPACK(FLO(a) * FLO(b), FHI(a) * FHI(b)))
MINMAX2(pk_min_f16, B32, B32,
        PACK(min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, false),
             min_max_f16_bits(a >> 16, b >> 16, ieee, false)))
MINMAX2(pk_max_f16, B32, B32,
        PACK(min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, true),
             min_max_f16_bits(a >> 16, b >> 16, ieee, true)))

OP3(fma_mix_f32, F32, F32, F32, F32, fmaf(a, b, c))
OP3(fma_mixlo_f16, F16, F32, F32, F32, fmaf(a, b, c))
OP3(fma_mixhi_f16, F16, F32, F32, F32, fmaf(a, b, c))

OP3(dot2_f32_f16, F32, B32, B32, F32, dot2_f32(a, b, c))
OP3(flushed_dot2_f32_f16, F32, B32, B32, F32, flushed_dot2_f32(a, b, c))
SATURATING3(dot2_i32_i16, U32, B32, B32, U32, (uint32_t)dot2_i16(a, b) + c,
            saturate_i32(dot2_i16(a, b) + (int32_t)c))
SATURATING3(dot2_u32_u16, U32, B32, B32, U32, (uint32_t)dot2_u16(a, b) + c,
            saturate_u32(dot2_u16(a, b) + c))
SATURATING3(dot4_i32_i8, U32, B32, B32, U32, (uint32_t)dot4_i8(a, b) + c,
            saturate_i32(dot4_i8(a, b) + (int32_t)c))
SATURATING3(dot4_u32_u8, U32, B32, B32, U32, (uint32_t)dot4_u8(a, b) + c,
            saturate_u32(dot4_u8(a, b) + c))
SATURATING3(dot8_i32_i4, U32, B32, B32, U32, (uint32_t)dot8_i4(a, b) + c,
            saturate_i32(dot8_i4(a, b) + (int32_t)c))
SATURATING3(dot8_u32_u4, U32, B32, B32, U32, (uint32_t)dot8_u4(a, b) + c,
            saturate_u32(dot8_u4(a, b) + c))

/* Defines an operation on pairs of f32 in two registers. One loop covers the lanes of the two
 * registers. */
#define PK_F32(name, expr)                                                                         \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b, *pc = o->c ? o->c : o->b;                           \
        _Pragma("GCC ivdep") for (int l = 0; l < 2 * LANES; l++) {                                 \
            float a = f32_of(pa[l]), b = f32_of(pb[l]), c = f32_of(pc[l]);                         \
            (void)c;                                                                               \
            d[l] = bits_of_f32(expr);                                                              \
        }                                                                                          \
    }

PK_F32(pk_fma_f32, fmaf(a, b, c))
PK_F32(pk_mul_f32, a *b)
PK_F32(pk_add_f32, a + b)

static void pk_mov_b32(struct lanes *o) {
    memcpy(o->d, o->a, LANES * sizeof *o->d);
    memcpy(o->d + LANES, o->b + LANES, LANES * sizeof *o->d);
}

static const struct row rows[] = {
#define ROW VROW
#include "vop3p.def"
#undef ROW
};

const struct rows softgpu_rows_vop3p = FAMILY(rows);
