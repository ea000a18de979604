/* Implements the instructions that exist only in VOP3's encoding, such as division steps and
 * instructions with three sources or 64-bit results. */
#include "arith.h"
#include "division.h"
#include "families.h"
#include "float8.h"
#include "lanes.h"
#include "operand.h"
#include "video.h"

OP3(mad_legacy_f32, F32, F32, F32, F32, (a == 0 || b == 0 ? 0 : a * b) + c)
OP2(mul_legacy_f32, F32, F32, F32, a == 0 || b == 0 ? 0 : a * b)
OP3(mad_f32, F32, F32, F32, F32, a *b + c)
OP3(fma_f32, F32, F32, F32, F32, fmaf(a, b, c))
OP3(fma_f64, F64, F64, F64, F64, fma(a, b, c))
OP3(mad_f16, F16, F16, F16, F16, f16_of(bits_of_f16(a *b)) + c)
OP3(fma_f16, U16, U16, U16, U16, fma_f16_bits((uint16_t)a, (uint16_t)b, (uint16_t)c))
OP2(add_f64, F64, F64, F64, a + b)
OP2(mul_f64, F64, F64, F64, a *b)
OP2(ldexp_f64, F64, F64, I32, ldexp(a, b))
OP2(ldexp_f32, F32, F32, I32, scaled_f32(a, b))
MINMAX2(min_f64, B64, B64, min_max_f64_bits(a, b, ieee, false))
MINMAX2(max_f64, B64, B64, min_max_f64_bits(a, b, ieee, true))

MINMAX3(min3_f32, B32, B32, min_f32_bits(min_f32_bits(a, b, ieee), c, ieee))
MINMAX3(max3_f32, B32, B32, max_f32_bits(max_f32_bits(a, b, ieee), c, ieee))
MINMAX3(min3_f16, U16, U16, min3_f16_bits(a, b, c, ieee, false))
MINMAX3(max3_f16, U16, U16, min3_f16_bits(a, b, c, ieee, true))
MINMAX3(med3_f32, B32, B32, med3_f32_bits(a, b, c, ieee))
MINMAX3(med3_f16, U16, U16, med3_f16_bits(a, b, c, ieee))
OP3(min3_i32, I32, I32, I32, I32, MIN3(a, b, c))
OP3(min3_u32, U32, U32, U32, U32, MIN3(a, b, c))
OP3(min3_i16, I16, I16, I16, I16, MIN3(a, b, c))
OP3(min3_u16, U16, U16, U16, U16, MIN3(a, b, c))
OP3(max3_i32, I32, I32, I32, I32, MAX3(a, b, c))
OP3(max3_u32, U32, U32, U32, U32, MAX3(a, b, c))
OP3(max3_i16, I16, I16, I16, I16, MAX3(a, b, c))
OP3(max3_u16, U16, U16, U16, U16, MAX3(a, b, c))
OP3(med3_i32, I32, I32, I32, I32, MED3(a, b, c))
OP3(med3_u32, U32, U32, U32, U32, MED3(a, b, c))
OP3(med3_i16, I16, I16, I16, I16, MED3(a, b, c))
OP3(med3_u16, U16, U16, U16, U16, MED3(a, b, c))

OP3(cubeid_f32, F32, F32, F32, F32, cube_id(a, b, c))
OP3(cubesc_f32, F32, F32, F32, F32, cube_sc(a, b, c))
OP3(cubetc_f32, F32, F32, F32, F32, cube_tc(a, b, c))
OP3(cubema_f32, F32, F32, F32, F32, 2 * cube_major(a, b, c))

SATURATING3(mad_i32_i24, U32, I32, I32, U32, sext24(a) * (uint32_t)sext24(b) + c,
            saturate_i32((int64_t)sext24(a) * sext24(b) + (int32_t)c))
SATURATING3(mad_u32_u24, U32, U32, U32, U32, (a & 0xffffff) * (b & 0xffffff) + c,
            saturate_u32((int64_t)(a & 0xffffff) * (b & 0xffffff) + c))
SATURATING3(mad_u16, U16, U16, U16, U16, a *b + c, (uint64_t)a *b + c > 65535 ? 65535 : a * b + c)
SATURATING3(mad_i16, I16, I16, I16, I16, a *b + c, saturate_i16(a *b + c))
SATURATING3(mad_u32_u16, U32, U16, U16, U32, a *b + c, saturate_u32((int64_t)a *b + c))
SATURATING3(mad_i32_i16, U32, I16, I16, U32, (uint32_t)(a * b) + c,
            saturate_i32((int64_t)a *b + (int32_t)c))
OP3(bfe_u32, U32, U32, U32, U32, a >> (b & 31) & ((1u << (c & 31)) - 1))
OP3(bfe_i32, I32, U32, U32, U32, bfe_signed(a, b & 31, c & 31))
OP3(bfi_b32, B32, B32, B32, B32, (a & b) | (~a & c))
OP3(alignbit_b32, B32, U32, U32, U32, ((uint64_t)a << 32 | b) >> (c & 31))
OP3(alignbyte_b32, B32, U32, U32, U32, ((uint64_t)a << 32 | b) >> 8 * (c & 3))
OP3(lerp_u8, B32, B32, B32, B32, lerp_u8_of(a, b, c))
OP3(sad_u8, U32, B32, B32, U32, sad4(a, b) + c)
OP3(sad_hi_u8, U32, B32, B32, U32, (sad4(a, b) << 16) + c)
OP3(sad_u16, U32, B32, B32, U32, distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c)
OP3(sad_u32, U32, U32, U32, U32, distance(a, b) + c)
OP3(msad_u8, U32, B32, B32, U32, masked_sad4(a, b) + c)
OP3(qsad_pk_u16_u8, B64, B64, B32, B64, qsad(a, b, c, false))
OP3(mqsad_pk_u16_u8, B64, B64, B32, B64, qsad(a, b, c, true))
OP3(cvt_pk_u8_f32, B32, F32, U32, B32, insert_u8(a, b, c))
OP3(cvt_pkaccum_u8_f32, B32, F32, U32, B32, insert_u8(a, b, c))
OP3(perm_b32, B32, B32, B32, B32, permute_bytes(a, b, c))
OP3(xad_u32, U32, U32, U32, U32, (a ^ b) + c)
OP3(lshl_add_u64, U64, U64, U32, U64, (a << (b & 7)) + c)
OP3(lshl_add_u32, U32, U32, U32, U32, (a << (b & 31)) + c)
OP3(add_lshl_u32, U32, U32, U32, U32, (a + b) << (c & 31))
OP3(add3_u32, U32, U32, U32, U32, a + b + c)
OP3(lshl_or_b32, B32, B32, U32, B32, a << (b & 31) | c)
OP3(and_or_b32, B32, B32, B32, B32, (a & b) | c)
OP3(or3_b32, B32, B32, B32, B32, a | b | c)

OP2(mul_lo_u32, U32, U32, U32, a *b)
OP2(mul_hi_u32, U32, U32, U32, (uint64_t)a *b >> 32)
OP2(mul_hi_i32, I32, I32, I32, (int64_t)a *b >> 32)
OP2(bcnt_u32_b32, U32, B32, U32, (uint32_t)__builtin_popcount(a) + b)
OP2(lshlrev_b64, B64, U32, B64, b << (a & 63))
OP2(lshrrev_b64, B64, U32, B64, b >> (a & 63))
OP2(ashrrev_i64, I64, U32, I64, b >> (a & 63))
OP2(bfm_b32, B32, U32, U32, ((1u << (a & 31)) - 1) << (b & 31))
OP2(cvt_pknorm_i16_f32, B32, F32, F32, (snorm16(a) & 0xffff) | (uint32_t)snorm16(b) << 16)
OP2(cvt_pknorm_u16_f32, B32, F32, F32, unorm16(a) | unorm16(b) << 16)
OP2(cvt_pknorm_i16_f16, B32, F16, F16, (snorm16(a) & 0xffff) | (uint32_t)snorm16(b) << 16)
OP2(cvt_pknorm_u16_f16, B32, F16, F16, unorm16(a) | unorm16(b) << 16)

/* Converts two numbers into the half of the destination that op_sel selects, and preserves the
 * other half. */
static void pack_float8(struct lanes *o, const struct float8 *f) {
    const uint32_t *old = o->w->v[o->i->dst.reg];
    unsigned shift = o->i->op_sel & 8 ? 16 : 0;
    bool saturates = o->w->mode & MODE_FP16_OVFL;
    EACH_LANE(l) {
        uint32_t low = float8_of_f32(f, f32_of(o->a[l]), saturates);
        uint32_t high = float8_of_f32(f, f32_of(o->b[l]), saturates);
        o->d[l] = (old[l] & ~(0xffffu << shift)) | (low | high << 8) << shift;
    }
}

/* Converts one number to one byte with stochastic rounding: adds noise to the mantissa before the
 * conversion. */
static void round_float8(struct lanes *o, const struct float8 *f, unsigned noise_shift) {
    const uint32_t *old = o->w->v[o->i->dst.reg];
    unsigned shift = 8 * (o->i->op_sel >> 2 & 3);
    bool saturates = o->w->mode & MODE_FP16_OVFL;
    EACH_LANE(l) {
        uint32_t u = o->a[l], noise = o->b[l] >> noise_shift;
        uint32_t sum = (u & 0xff800000) | (((u & 0x7fffff) + noise) & 0x7fffff);
        uint32_t byte = float8_of_f32(f, f32_of(sum), saturates);
        o->d[l] = (old[l] & ~(0xffu << shift)) | byte << shift;
    }
}

#define FLOAT8(name, convert, ...)                                                                 \
    static void name(struct lanes *o) {                                                            \
        convert(o, __VA_ARGS__);                                                                   \
    }
FLOAT8(cvt_pk_fp8_f32, pack_float8, &softgpu_fp8)
FLOAT8(cvt_pk_bf8_f32, pack_float8, &softgpu_bf8)
FLOAT8(cvt_sr_fp8_f32, round_float8, &softgpu_fp8, 12)
FLOAT8(cvt_sr_bf8_f32, round_float8, &softgpu_bf8, 11)

OP2(cvt_pkrtz_f16_f32, B32, U32, U32, f16_toward_zero(a) | f16_toward_zero(b) << 16)
OP2(cvt_pk_u16_u32, B32, U32, U32, (a > 65535 ? 65535 : a) | (b > 65535 ? 65535 : b) << 16)
OP2(cvt_pk_i16_i32, B32, I32, I32, (saturate_i16(a) & 0xffff) | (uint32_t)saturate_i16(b) << 16)
OP2(pack_b32_f16, B32, U16, U16, a | b << 16)
SATURATING2(add_i32, U32, U32, U32, a + b, saturate_i32((int64_t)(int32_t)a + (int32_t)b))
SATURATING2(sub_i32, U32, U32, U32, a - b, saturate_i32((int64_t)(int32_t)a - (int32_t)b))
SATURATING2(add_i16, I16, I16, I16, a + b, saturate_i16(a + b))
SATURATING2(sub_i16, I16, I16, I16, a - b, saturate_i16(a - b))

OP2(trig_preop_f64, F64, F64, U32, trig_preop(a, b))
OP3(div_fixup_f32, F32, F32, F32, F32, fixup_f32(a, b, c))
OP3(div_fixup_f64, F64, F64, F64, F64, fixup_f64(a, b, c))
OP3(div_fixup_f16, F16, F16, F16, F16, fixup_f16(a, b, c))

#define DIV_FMAS(name, T, fused)                                                                   \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b, *pc = o->c;                                         \
        for (int l = 0; l < LANES; l++) {                                                          \
            __auto_type a = LOAD_##T(pa);                                                          \
            __auto_type b = LOAD_##T(pb);                                                          \
            __auto_type c = LOAD_##T(pc);                                                          \
            bool scaled = o->in >> l & 1;                                                          \
            STORE_##T(fused(a, b, c, scaled));                                                     \
        }                                                                                          \
    }

DIV_FMAS(div_fmas_f32, F32, fmas_f32)
DIV_FMAS(div_fmas_f64, F64, fmas_f64)

#define DIV_SCALE(name, T, scale)                                                                  \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b, *pc = o->c;                                         \
        uint64_t out = 0;                                                                          \
        for (int l = 0; l < LANES; l++) {                                                          \
            bool scaled = false;                                                                   \
            __auto_type a = LOAD_##T(pa);                                                          \
            __auto_type b = LOAD_##T(pb);                                                          \
            __auto_type c = LOAD_##T(pc);                                                          \
            STORE_##T(scale(a, b, c, &scaled));                                                    \
            out |= (uint64_t)scaled << l;                                                          \
        }                                                                                          \
        o->out = out;                                                                              \
    }

DIV_SCALE(div_scale_f32, F32, scale_f32)
DIV_SCALE(div_scale_f64, F64, scale_f64)

static void mad_u64_u32(struct lanes *o) {
    uint32_t *d = o->d;
    for (int l = 0; l < LANES; l++) {
        uint64_t c = LOAD_U64(o->c), r = (uint64_t)o->a[l] * o->b[l] + c;
        STORE_U64(r);
        o->out |= (uint64_t)(r < c) << l;
    }
}

/* Computes a product plus a 64-bit number, and the carry. The carry is the sign of the exact sum
 * (bit 64). If the 64-bit result wraps, the carry is the opposite of the result's sign bit. */
VECTORISED static void mad_i64_i32(struct lanes *o) {
    uint32_t out[LANES], *d = o->d;
    const uint32_t *pa = o->a, *pb = o->b, *pc = o->c;
    EACH_LANE(l) {
        uint64_t product = (uint64_t)((int64_t)LOAD_I32(pa) * LOAD_I32(pb)), c = LOAD_B64(pc);
        uint64_t r = product + c, wrapped = (product ^ r) & (c ^ r);
        out[l] = (uint32_t)((r ^ wrapped) >> 32);
        STORE_B64(r);
    }
    o->out = softgpu_gather_mask(out);
}

static void mqsad_u32_u8(struct lanes *o) {
    for (int l = 0; l < LANES; l++) {
        uint64_t a = LOAD_B64(o->a);
        uint32_t b = o->b[l];
        for (int n = 0; n < 4; n++)
            o->d[n * LANES + l] = masked_sad4((uint32_t)(a >> 8 * n), b) + o->c[n * LANES + l];
    }
}

/* Adds to b, in lane n, the number of set bits below bit n in a 64-bit mask. Source a contains the
 * low or the high half of the mask, and only this half is counted. */
static void mbcnt_lo_u32_b32(struct lanes *o) {
    for (int l = 0; l < LANES; l++) {
        uint32_t below = l < 32 ? (1u << l) - 1 : UINT32_MAX;
        o->d[l] = (uint32_t)__builtin_popcount(o->a[l] & below) + o->b[l];
    }
}

static void mbcnt_hi_u32_b32(struct lanes *o) {
    for (int l = 0; l < LANES; l++) {
        uint32_t below = l < 32 ? 0 : (1u << (l - 32)) - 1;
        o->d[l] = (uint32_t)__builtin_popcount(o->a[l] & below) + o->b[l];
    }
}

static const struct row rows[] = {
#define ROW VROW
#include "vop3.def"
#undef ROW
};

const struct rows softgpu_rows_vop3 = FAMILY(rows);
