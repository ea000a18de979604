/* Implements AMD's division steps (v_div_scale, v_div_fmas and v_div_fixup), and the bits of 2/pi
 * for range reduction. A quotient is correct only if all three steps agree on which operands were
 * scaled. */
#ifndef SOFTGPU_DIVISION_H
#define SOFTGPU_DIVISION_H

#include "fp.h"

#include <fenv.h>
#include <float.h>

static inline int biased32(float x) {
    return bits_of_f32(x) >> 23 & 0xff;
}
static inline int biased64(double x) {
    return bits_of_f64(x) >> 52 & 0x7ff;
}

static inline bool denormal32(float x) {
    return x != 0 && biased32(x) == 0;
}
static inline bool denormal64(double x) {
    return x != 0 && biased64(x) == 0;
}

/* Defines a function that scales s, which is either the denominator d or the numerator n. The
 * function sets *scaled if only d or only n needs scaling: v_div_fmas must then undo the effect on
 * the quotient. If the exponents differ by `near_largest`, the quotient is near the largest number.
 * A numerator whose exponent is at most `tiny` is too small for the steps' residues. */
#define DIV_SCALE_OF(real, bits, near_largest, tiny, up, down)                                     \
    static inline real scale_f##bits(real s, real d, real n, bool *scaled) {                       \
        bool is_d = bits_of_f##bits(s) == bits_of_f##bits(d);                                      \
        bool is_n = bits_of_f##bits(s) == bits_of_f##bits(n);                                      \
        if (n == 0 || d == 0)                                                                      \
            return (real)NAN;                                                                      \
        if (biased##bits(n) - biased##bits(d) >= (near_largest)) {                                 \
            *scaled = true;                                                                        \
            return is_d ? s * (up) : s;                                                            \
        }                                                                                          \
        if (denormal##bits(d))                                                                     \
            return s * (up);                                                                       \
        bool tiny_reciprocal = denormal##bits(1 / d), tiny_quotient = denormal##bits(n / d);       \
        *scaled = tiny_quotient;                                                                   \
        if (tiny_reciprocal)                                                                       \
            return !tiny_quotient || is_d ? s * (down) : s;                                        \
        if (tiny_quotient)                                                                         \
            return is_n ? s * (up) : s;                                                            \
        return biased##bits(n) <= (tiny) ? s * (up) : s;                                           \
    }

DIV_SCALE_OF(float, 32, 96, 23, 0x1p64f, 0x1p-64f)
DIV_SCALE_OF(double, 64, 768, 53, 0x1p128, 0x1p-128)

/* Undoes the scaling of a quotient. c, which is nearly the quotient, shows whether the scaling made
 * the quotient small or large. */
static inline float fmas_f32(float a, float b, float c, bool scaled) {
    if (!scaled)
        return fmaf(a, b, c);
    /* The result is rounded only once, because f64 represents the unscaled sum with enough bits for
     * f32's denormal range. */
    return (float)(fma((double)a, (double)b, (double)c) * (biased32(c) > 127 ? 0x1p64 : 0x1p-64));
}

/* Computes (a * b + c) * 2^-128, rounded once. If the scaled result is denormal, the first rounding
 * can create a tie. In such a tie, the bits that the first rounding removed decide the second
 * rounding. */
static inline double scaled_down_sum(double a, double b, double c) {
    double sum = fma(a, b, c), result = sum * 0x1p-128;
    double lost = sum - result * 0x1p128, cut = fma(a, b, c - sum);
    bool more = cut != 0 && signbit(cut) == signbit(lost);
    if (more && fabs(lost) == 0x1p-947 && fegetround() == FE_TONEAREST)
        result += copysign(0x1p-1074, lost);
    return result;
}

static inline double fmas_f64(double a, double b, double c, bool scaled) {
    if (!scaled)
        return fma(a, b, c);
    return biased64(c) > 1023 ? fma(a, b, c) * 0x1p128 : scaled_down_sum(a, b, c);
}

/* Stores in *r the result that a special case of the operands requires. Returns false if there is
 * none. `nan` is the result for 0/0. */
#define SPECIAL_QUOTIENT(real, bits, nan)                                                          \
    static inline bool special_f##bits(real d, real n, real sign, real *r) {                       \
        if (n != n || d != d)                                                                      \
            *r = n != n ? n : d;                                                                   \
        else if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))                                     \
            *r = f##bits##_of(nan);                                                                \
        else if (d == 0 || isinf(n))                                                               \
            *r = sign * (real)INFINITY;                                                            \
        else if (isinf(d) || n == 0)                                                               \
            *r = sign * 0;                                                                         \
        else                                                                                       \
            return false;                                                                          \
        return true;                                                                               \
    }
SPECIAL_QUOTIENT(float, 32, 0xffc00000)
SPECIAL_QUOTIENT(double, 64, 0xfff8000000000000)

/* Returns the quotient, or the result of a special case. A quotient of finite numbers is NaN only
 * if an earlier step gave an infinity, so NaN indicates an overflow. */
static inline float fixup_f32(float q, float d, float n) {
    float sign = copysignf(1, d) * copysignf(1, n), r;
    if (special_f32(d, n, sign, &r))
        return r;
    if (biased32(n) - biased32(d) < -150)
        return sign * 0x1p-149f * 0x1p-149f;
    return q != q ? sign * FLT_MAX * 2 : copysignf(q, sign);
}

static inline double fixup_f64(double q, double d, double n) {
    double sign = copysign(1, d) * copysign(1, n), r;
    if (special_f64(d, n, sign, &r))
        return r;
    if (biased64(n) - biased64(d) < -1075)
        return sign * 0x1p-1074 * 0x1p-1074;
    return q != q ? sign * DBL_MAX * 2 : copysign(q, sign);
}

static inline float fixup_f16(float q, float d, float n) {
    float sign = copysignf(1, d) * copysignf(1, n), r;
    return special_f32(d, n, sign, &r) ? r : copysignf(q, sign);
}

/* Returns 53 bits of 2/pi, beginning with bit 53 * `segment`. If x's biased exponent exceeds 1077,
 * the function adds the excess to the first bit's number. */
static inline double trig_preop(double x, uint32_t segment) {
    static const uint64_t two_over_pi[] = {
        0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
        0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    };
    enum { WORDS = sizeof two_over_pi / sizeof two_over_pi[0] };
    int exponent = biased64(x), shift = (int)(segment & 31) * 53;
    if (exponent > 1077)
        shift += exponent - 1077;
    unsigned word = (unsigned)shift / 64, bit = (unsigned)shift % 64;
    uint64_t high = word < WORDS ? two_over_pi[word] : 0;
    uint64_t low = word + 1 < WORDS ? two_over_pi[word + 1] : 0;
    uint64_t bits = (bit ? high << bit | low >> (64 - bit) : high) >> 11;
    int scale = -53 - shift + (exponent >= 1968 ? 128 : 0);
    return ldexp((double)bits, scale);
}

#endif
