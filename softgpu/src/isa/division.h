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

/* Scales s, which is either the denominator d or the numerator n. Sets *scaled if only d or only n
 * needs scaling: v_div_fmas must then undo the effect on the quotient. */
static inline float scale_f32(float s, float d, float n, bool *scaled) {
    bool is_d = bits_of_f32(s) == bits_of_f32(d), is_n = bits_of_f32(s) == bits_of_f32(n);
    if (n == 0 || d == 0)
        return NAN;
    if (biased32(n) - biased32(d) >= 96) { /* the quotient is near the largest number */
        *scaled = true;
        return is_d ? s * 0x1p64f : s;
    }
    if (denormal32(d))
        return s * 0x1p64f;
    bool tiny_reciprocal = denormal32(1.0f / d), tiny_quotient = denormal32(n / d);
    if (tiny_reciprocal && tiny_quotient) {
        *scaled = true;
        return is_d ? s * 0x1p-64f : s;
    }
    if (tiny_reciprocal)
        return s * 0x1p-64f;
    if (tiny_quotient) {
        *scaled = true;
        return is_n ? s * 0x1p64f : s;
    }
    return biased32(n) <= 23 ? s * 0x1p64f : s;
}

static inline double scale_f64(double s, double d, double n, bool *scaled) {
    bool is_d = bits_of_f64(s) == bits_of_f64(d), is_n = bits_of_f64(s) == bits_of_f64(n);
    if (n == 0 || d == 0)
        return NAN;
    if (biased64(n) - biased64(d) >= 768) {
        *scaled = true;
        return is_d ? s * 0x1p128 : s;
    }
    if (denormal64(d))
        return s * 0x1p128;
    bool tiny_reciprocal = denormal64(1.0 / d), tiny_quotient = denormal64(n / d);
    if (tiny_reciprocal && tiny_quotient) {
        *scaled = true;
        return is_d ? s * 0x1p-128 : s;
    }
    if (tiny_reciprocal)
        return s * 0x1p-128;
    if (tiny_quotient) {
        *scaled = true;
        return is_n ? s * 0x1p128 : s;
    }
    return biased64(n) <= 53 ? s * 0x1p128 : s;
}

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

/* Returns the quotient, or the result that a special case of the operands requires. A quotient of
 * finite numbers is NaN only if an earlier step gave an infinity, so NaN indicates an overflow. */
static inline float fixup_f32(float q, float d, float n) {
    float sign = copysignf(1, d) * copysignf(1, n);
    if (n != n || d != d)
        return n != n ? n : d;
    if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))
        return f32_of(0xffc00000);
    if (d == 0 || isinf(n))
        return sign * INFINITY;
    if (isinf(d) || n == 0)
        return sign * 0.0f;
    if (biased32(n) - biased32(d) < -150)
        return sign * 0x1p-149f * 0x1p-149f;
    if (q != q)
        return sign * FLT_MAX * 2;
    return copysignf(q, sign);
}

static inline double fixup_f64(double q, double d, double n) {
    double sign = copysign(1, d) * copysign(1, n);
    if (n != n || d != d)
        return n != n ? n : d;
    if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))
        return f64_of(0xfff8000000000000);
    if (d == 0 || isinf(n))
        return sign * (double)INFINITY;
    if (isinf(d) || n == 0)
        return sign * 0.0;
    if (biased64(n) - biased64(d) < -1075)
        return sign * 0x1p-1074 * 0x1p-1074;
    if (q != q)
        return sign * DBL_MAX * 2;
    return copysign(q, sign);
}

static inline float fixup_f16(float q, float d, float n) {
    float sign = copysignf(1, d) * copysignf(1, n);
    if (n != n || d != d)
        return n != n ? n : d;
    if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))
        return f32_of(0xffc00000);
    if (d == 0 || isinf(n))
        return sign * INFINITY;
    if (isinf(d) || n == 0)
        return sign * 0.0f;
    return copysignf(q, sign);
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
