/* Implements VOP1: instructions with one source. */
#include "families.h"
#include "float8.h"
#include "lanes.h"
#include "transcendental.h"

OP1(mov_b32, B32, B32, a)
OP1(mov_b64, B64, B64, a)
OP1(not_b32, B32, B32, ~a)
OP1(cvt_f32_i32, F32, I32, (float)a)
/* Without AVX-512, no CPU vector instruction converts unsigned integers, so the code converts a
 * signed integer and adds 2^31. */
OP1(cvt_f32_u32, F32, U32, (float)((double)(int32_t)(a ^ 0x80000000) + 0x1p31))
OP1(cvt_f64_i32, F64, I32, (double)a)
OP1(cvt_f64_u32, F64, U32, (double)(int32_t)(a ^ 0x80000000) + 0x1p31)
OP1(cvt_u32_f32, U32, F32, u32_of_f64(a))
OP1(cvt_i32_f32, I32, F32, i32_of_f32(a))
OP1(cvt_u32_f64, U32, F64, u32_of_f64(a))
OP1(cvt_i32_f64, I32, F64, i32_of_f64(a))
OP1(cvt_f16_f32, F16, F32, a)
OP1(cvt_f32_f16, F32, F16, a)
OP1(cvt_rpi_i32_f32, I32, F32, i32_of_f64(floor((double)a + 0.5)))
OP1(cvt_flr_i32_f32, I32, F32, i32_of_f64(floor((double)a)))
OP1(cvt_off_f32_i4, F32, U32, (float)((int32_t)(a << 28) >> 28) * 0.0625f)
OP1(cvt_f32_f64, F32, F64, (float)a)
OP1(cvt_f64_f32, F64, F32, (double)a)
OP1(cvt_f32_ubyte0, F32, U32, (float)(int32_t)(a & 0xff))
OP1(cvt_f32_ubyte1, F32, U32, (float)(int32_t)(a >> 8 & 0xff))
OP1(cvt_f32_ubyte2, F32, U32, (float)(int32_t)(a >> 16 & 0xff))
OP1(cvt_f32_ubyte3, F32, U32, (float)(int32_t)(a >> 24))
OP1(cvt_f16_u16, F16, U16, (float)(int32_t)a)
OP1(cvt_f16_i16, F16, I16, (float)a)
OP1(cvt_u16_f16, U16, F16, a > 0 ? (a < 65535 ? (int32_t)a : 65535) : 0)
OP1(cvt_i16_f16, I16, F16, a == a ? (a < 32767 ? (a > -32768 ? (int32_t)a : -32768) : 32767) : 0)

static uint64_t pair_of_float8(const struct float8 *f, uint32_t two) {
    return bits_of_f32(f32_of_float8(f, (uint8_t)two)) |
           (uint64_t)bits_of_f32(f32_of_float8(f, (uint8_t)(two >> 8))) << 32;
}

OP1(cvt_f32_fp8, F32, U32, f32_of_float8(&softgpu_fp8, (uint8_t)a))
OP1(cvt_f32_bf8, F32, U32, f32_of_float8(&softgpu_bf8, (uint8_t)a))
OP1(cvt_pk_f32_fp8, B64, U32, pair_of_float8(&softgpu_fp8, a))
OP1(cvt_pk_f32_bf8, B64, U32, pair_of_float8(&softgpu_bf8, a))

OP1(trunc_f64, F64, F64, trunc(a))
OP1(ceil_f64, F64, F64, ceil(a))
OP1(rndne_f64, F64, F64, roundeven(a))
OP1(floor_f64, F64, F64, floor(a))
OP1(trunc_f32, F32, F32, truncf(a))
OP1(ceil_f32, F32, F32, ceilf(a))
OP1(rndne_f32, F32, F32, roundevenf(a))
OP1(floor_f32, F32, F32, floorf(a))
OP1(trunc_f16, F16, F16, truncf(a))
OP1(ceil_f16, F16, F16, ceilf(a))
OP1(rndne_f16, F16, F16, roundevenf(a))
OP1(floor_f16, F16, F16, floorf(a))

/* The fraction is below 1, even where a - floor(a) would round up to 1. */
OP1(fract_f32, F32, F32, fract_of_f32(a))
OP1(fract_f64, F64, F64, fract_of_f64(a))
OP1(fract_f16, F16, F16, fract_of_f16(a))

OP1(exp_f32, F32, F32, (float)exp2((double)a))
OP1(log_f32, F32, F32, (float)log2((double)a))
OP1(rcp_f32, F32, F32, 1.0f / a)
OP1(rcp_iflag_f32, F32, F32, 1.0f / a)
OP1(rsq_f32, F32, F32, (float)(1.0 / sqrt((double)a)))
OP1(rcp_f64, F64, F64, 1.0 / a)
OP1(rsq_f64, F64, F64, 1.0 / sqrt(a))
OP1(sqrt_f32, F32, F32, sqrtf(a))
OP1(sqrt_f64, F64, F64, sqrt(a))
OP1(sin_f32, F32, F32, (float)sin_of_turns(a))
OP1(cos_f32, F32, F32, (float)cos_of_turns(a))
OP1(exp_legacy_f32, F32, F32, (float)exp2((double)a))
OP1(log_legacy_f32, F32, F32, (float)log2((double)a))
/* Computes f16 functions in f32. A second rounding, from f32 to f16, is harmless, because
 * f32 has 2 * 11 + 2 = 24 mantissa bits. */
OP1(rcp_f16, F16, F16, 1.0f / a)
OP1(sqrt_f16, F16, F16, sqrtf(a))
OP1(rsq_f16, F16, F16, (float)(1.0 / sqrt((double)a)))
OP1(log_f16, F16, F16, (float)log2((double)a))
OP1(exp_f16, F16, F16, (float)exp2((double)a))
OP1(sin_f16, F16, F16, (float)sin_of_turns(a))
OP1(cos_f16, F16, F16, (float)cos_of_turns(a))

OP1(bfrev_b32, B32, B32, reverse_bits(a))
OP1(ffbh_u32, U32, U32, a ? __builtin_clz(a) : -1)
OP1(ffbl_b32, U32, U32, a ? __builtin_ctz(a) : -1)
OP1(ffbh_i32, I32, I32, a != 0 && a != -1 ? __builtin_clz((uint32_t)(a ^ a >> 31)) : -1)

OP1(frexp_exp_i32_f64, I32, F64, exponent_of_f64(a))
OP1(frexp_mant_f64, F64, F64, mantissa_of_f64(a))
OP1(frexp_exp_i32_f32, I32, F32, exponent_of_f64(a))
OP1(frexp_mant_f32, F32, F32, (float)mantissa_of_f64(a))
OP1(frexp_exp_i16_f16, I16, F16, exponent_of_f64(a))
OP1(frexp_mant_f16, F16, F16, (float)mantissa_of_f64(a))

OP1(cvt_norm_i16_f16, I16, F16, snorm16(a))
OP1(cvt_norm_u16_f16, U16, F16, unorm16(a))
OP1(sat_pk_u8_i16, B32, B32, saturate_u8((int16_t)a) | saturate_u8((int16_t)(a >> 16)) << 8)

static const struct row rows[] = {
#define ROW VROW
#include "vop1.def"
#undef ROW
};

const struct rows softgpu_rows_vop1 = FAMILY(rows);
