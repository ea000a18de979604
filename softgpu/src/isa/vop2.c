/* Implements VOP2: instructions with two sources, including those that accumulate into their
 * destination. */
#include "arith.h"
#include "families.h"
#include "lanes.h"
#include "operand.h"

VECTORISED static void cndmask_b32(struct lanes *o) {
    uint32_t mask[LANES], *d = o->d;
    const uint32_t *a = o->a, *b = o->b;
    softgpu_expand_mask(mask, o->in);
    EACH_LANE(l) d[l] = (b[l] & mask[l]) | (a[l] & ~mask[l]);
}

OP2(add_f32, F32, F32, F32, a + b)
OP2(sub_f32, F32, F32, F32, a - b)
OP2(subrev_f32, F32, F32, F32, b - a)
OP2(mul_f32, F32, F32, F32, a *b)
OP2(mul_legacy_f32, F32, F32, F32, a == 0 || b == 0 ? 0 : a * b)
OP3(mac_f32, F32, F32, F32, F32, a *b + c)
OP3(fmac_f32, F32, F32, F32, F32, fmaf(a, b, c))
OP3(fmac_f64, F64, F64, F64, F64, fma(a, b, c))

OP2(add_f16, F16, F16, F16, a + b)
OP2(sub_f16, F16, F16, F16, a - b)
OP2(subrev_f16, F16, F16, F16, b - a)
OP2(mul_f16, F16, F16, F16, a *b)
OP3(mac_f16, F16, F16, F16, F16, f16_of(bits_of_f16(a *b)) + c)
OP2(ldexp_f16, F16, F16, I16, scaled_f32(a, b))

OP2(mul_i32_i24, I32, I32, I32, sext24(a) * (uint32_t)sext24(b))
OP2(mul_hi_i32_i24, I32, I32, I32, (int64_t)sext24(a) * sext24(b) >> 32)
OP2(mul_u32_u24, U32, U32, U32, (a & 0xffffff) * (b & 0xffffff))
OP2(mul_hi_u32_u24, U32, U32, U32, (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 32)
OP2(min_i32, I32, I32, I32, a < b ? a : b)
OP2(max_i32, I32, I32, I32, a > b ? a : b)
OP2(min_u32, U32, U32, U32, a < b ? a : b)
OP2(max_u32, U32, U32, U32, a > b ? a : b)
OP2(lshrrev_b32, B32, U32, U32, b >> (a & 31))
OP2(ashrrev_i32, I32, U32, I32, b >> (a & 31))
OP2(lshlrev_b32, B32, U32, U32, b << (a & 31))
OP2(and_b32, B32, B32, B32, a &b)
OP2(or_b32, B32, B32, B32, a | b)
OP2(xor_b32, B32, B32, B32, a ^ b)
OP2(xnor_b32, B32, B32, B32, ~(a ^ b))

SATURATING2(add_u32, U32, U32, U32, a + b, saturate_u32((int64_t)a + b))
SATURATING2(sub_u32, U32, U32, U32, a - b, saturate_u32((int64_t)a - b))
SATURATING2(subrev_u32, U32, U32, U32, b - a, saturate_u32((int64_t)b - a))
SATURATING2(add_u16, U16, U16, U16, a + b, saturate_u16((int32_t)(a + b)))
SATURATING2(sub_u16, U16, U16, U16, a - b, saturate_u16((int32_t)(a - b)))
SATURATING2(subrev_u16, U16, U16, U16, b - a, saturate_u16((int32_t)(b - a)))
OP2(mul_lo_u16, U16, U16, U16, a *b)
OP2(lshlrev_b16, U16, U16, U16, b << (a & 15))
OP2(lshrrev_b16, U16, U16, U16, b >> (a & 15))
OP2(ashrrev_i16, I16, U16, I16, b >> (a & 15))
OP2(max_u16, U16, U16, U16, a > b ? a : b)
OP2(max_i16, I16, I16, I16, a > b ? a : b)
OP2(min_u16, U16, U16, U16, a < b ? a : b)
OP2(min_i16, I16, I16, I16, a < b ? a : b)

MINMAX2(min_f32, B32, B32, min_f32_bits(a, b, ieee))
MINMAX2(max_f32, B32, B32, max_f32_bits(a, b, ieee))
MINMAX2(min_f16, U16, U16, min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, false))
MINMAX2(max_f16, U16, U16, min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, true))

static void saturate(struct lanes *o, const uint32_t *carried, uint32_t limit) {
    EACH_LANE(l) o->d[l] = carried[l] ? limit : o->d[l];
}

/* Computes 32-bit carries: a wrapped sum is below its first term, and a difference wraps if its
 * second term is larger. `with` is a lane's carry into the sum or the difference. */
#define CARRY_OUT(name, x, y, result, carry, limit)                                                \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t out[LANES], *d = o->d;                                                            \
        const uint32_t *px = o->x, *py = o->y;                                                     \
        EACH_LANE(l) {                                                                             \
            uint32_t a = px[l], b = py[l], r = result;                                             \
            d[l] = r;                                                                              \
            out[l] = carry ? UINT32_MAX : 0;                                                       \
        }                                                                                          \
        if (o->i->clamp)                                                                           \
            saturate(o, out, limit);                                                               \
        o->out = softgpu_gather_mask(out);                                                         \
    }

#define CARRY_THROUGH(name, x, y, first, carry1, result, carry2, limit)                            \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t in[LANES], out[LANES], *d = o->d;                                                 \
        const uint32_t *px = o->x, *py = o->y;                                                     \
        softgpu_expand_mask(in, o->in);                                                            \
        EACH_LANE(l) {                                                                             \
            uint32_t a = px[l], b = py[l], with = in[l] & 1, t = first, r = result;                \
            d[l] = r;                                                                              \
            out[l] = ((carry1) | (carry2)) ? UINT32_MAX : 0;                                       \
        }                                                                                          \
        if (o->i->clamp)                                                                           \
            saturate(o, out, limit);                                                               \
        o->out = softgpu_gather_mask(out);                                                         \
    }

CARRY_OUT(add_co_u32, a, b, a + b, r < a, UINT32_MAX)
CARRY_OUT(sub_co_u32, a, b, a - b, b > a, 0)
CARRY_OUT(subrev_co_u32, b, a, a - b, b > a, 0)
CARRY_THROUGH(addc_co_u32, a, b, a + b, t < a, t + with, r < t, UINT32_MAX)
CARRY_THROUGH(subb_co_u32, a, b, a - b, b > a, t - with, with > t, 0)
CARRY_THROUGH(subbrev_co_u32, b, a, a - b, b > a, t - with, with > t, 0)

OP3(dot2c_f32_f16, F32, B32, B32, F32, dot2_f32(a, b, c))
OP3(flushed_dot2c_f32_f16, F32, B32, B32, F32, flushed_dot2_f32(a, b, c))
SATURATING3(dot2c_i32_i16, U32, B32, B32, U32, (uint32_t)dot2_i16(a, b) + c,
            saturate_i32(dot2_i16(a, b) + (int32_t)c))
SATURATING3(dot4c_i32_i8, U32, B32, B32, U32, (uint32_t)dot4_i8(a, b) + c,
            saturate_i32(dot4_i8(a, b) + (int32_t)c))
SATURATING3(dot8c_i32_i4, U32, B32, B32, U32, (uint32_t)dot8_i4(a, b) + c,
            saturate_i32(dot8_i4(a, b) + (int32_t)c))
OP3(pk_fmac_f16, B32, B32, B32, B32, pk_fma(a, b, c))

static const struct row rows[] = {
#define ROW VROW
#include "vop2.def"
#undef ROW
};

const struct rows softgpu_rows_vop2 = FAMILY(rows);
