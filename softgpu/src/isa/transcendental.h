/* Implements functions of one argument that several instructions share. */
#ifndef SOFTGPU_TRANSCENDENTAL_H
#define SOFTGPU_TRANSCENDENTAL_H

#include "fp.h"

/* Returns the sine or cosine of a fraction of a turn, for instructions that compute sin or cos of 2
 * pi x. The caller first subtracts whole quarter turns, so that multiples of a quarter turn give
 * exactly 0, 1 or -1. Beyond 256 turns the functions of this file return a constant, as the
 * hardware does. */
static inline double turn_part(double x, int quarter, bool cosine) {
    const double pi2 = 1.57079632679489661923;
    switch ((quarter + cosine) & 3) {
    case 0:
        return sin(x * pi2);
    case 1:
        return cos(x * pi2);
    case 2:
        return -sin(x * pi2);
    default:
        return -cos(x * pi2);
    }
}

static inline double sin_of_turns(float turns) {
    double x = 4.0 * turns, whole = rint(x);
    if (turns != turns || isinf(turns))
        return NAN;
    if (fabsf(turns) > 256)
        return 0;
    return x == 0 ? x : turn_part(x - whole, (int)whole, false);
}

static inline double cos_of_turns(float turns) {
    double x = 4.0 * turns, whole = rint(x);
    if (turns != turns || isinf(turns))
        return NAN;
    if (fabsf(turns) > 256)
        return 1;
    return turn_part(x - whole, (int)whole, true);
}

static inline float fract_of_f32(float x) {
    float f = x - floorf(x);
    return f < 0x1.fffffep-1f ? f : f == f ? 0x1.fffffep-1f : f;
}

static inline double fract_of_f64(double x) {
    double f = x - floor(x);
    return f < 0x1.fffffffffffffp-1 ? f : f == f ? 0x1.fffffffffffffp-1 : f;
}

static inline float fract_of_f16(float x) {
    float f = x - floorf(x);
    return f < 0x1.ffcp-1f ? f : f == f ? 0x1.ffcp-1f : f;
}

static inline uint32_t reverse_bits(uint32_t x) {
    x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
    x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
    x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
    return __builtin_bswap32(x);
}

/* Returns frexp's exponent, or 0 if x is 0, infinite or NaN. */
static inline int exponent_of_f64(double x) {
    int e = 0;
    if (isfinite(x) && x != 0)
        (void)frexp(x, &e);
    return e;
}

static inline double mantissa_of_f64(double x) {
    int e;
    return isfinite(x) ? frexp(x, &e) : x;
}

static inline int32_t snorm16(float x) {
    x = x != x ? 0 : x < -1 ? -1 : x > 1 ? 1 : x;
    return (int32_t)roundeven((double)x * 32767); /* the product itself is exact */
}

static inline uint32_t unorm16(float x) {
    x = x > 0 ? (x > 1 ? 1 : x) : 0;
    return (uint32_t)(int32_t)roundeven((double)x * 65535);
}

static inline uint32_t saturate_u8(int32_t x) {
    return x < 0 ? 0 : x > 255 ? 255 : (uint32_t)x;
}

#endif
