/* Converts floating-point values to bits and back, and implements arithmetic that C lacks. */
#ifndef SOFTGPU_FP_H
#define SOFTGPU_FP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double f64_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Converts f16 to f32, which is exact. Branch-free: a multiplication re-biases a normal number, and
 * a subtraction removes the implicit bit from a denormal number. */
static inline float f16_of(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t normal = bits_of_f32(f32_of(rest + (224u << 23)) * 0x1p-112f);
    uint32_t denormal = bits_of_f32(f32_of((rest >> 13) | 126u << 23) - 0.5f);
    uint32_t special = rest | 0x7f800000;
    uint32_t value = h & 0x7c00 ? normal : denormal;
    value = (h & 0x7c00) == 0x7c00 ? special : value;
    return f32_of(value | sign);
}

/* Converts f32 to f16 in the processor's rounding mode. If MODE requires a mode other than
 * nearest-even, the instruction's handler has set the processor's mode. To round x to f16's last
 * bit, the function adds 2^13 times x's power of two. Below f16's normal range, the addition rounds
 * x to a multiple of 2^-24. The added number has x's sign, so that directed rounding is correct for
 * negative numbers. */
static inline uint16_t bits_of_f16(float x) {
    uint32_t u = bits_of_f32(x), sign = u & 0x80000000, mag = u & 0x7fffffff;
    uint32_t bias = mag & 0x7f800000; /* x's exponent, which the next lines limit */
    bias = bias < 113u << 23 ? 113u << 23 : bias;
    bias = bias > 142u << 23 ? 142u << 23 : bias;
    float magic = f32_of((bias + (13u << 23)) | sign); /* 2^13 times the power of two in `bias` */
    uint32_t sum = bits_of_f32(x + magic);
    /* The low bits of the sum's mantissa are x in units of f16's last place. A mantissa overflow
     * carries into the exponent automatically. */
    uint32_t units = sum - bits_of_f32(magic);
    uint32_t exponent = (bias >> 23) - 113;
    uint32_t h = (exponent << 10) + units;
    /* An overflow gives infinity, or the largest number if the mode rounds toward zero. */
    uint32_t product = bits_of_f32(x * 0x1p127f) << 1;
    uint32_t overflow = product == 0xff000000 ? 0x7c00 : 0x7bff;
    h = mag >= 143u << 23 ? overflow : h;
    h = mag > 0x7f800000 ? 0x7e00 | (mag >> 13 & 0x3ff) : h;
    return (uint16_t)(h | sign >> 16);
}

/* Returns the number, or a zero with its sign if the number is denormal. */
static inline uint32_t flushed_f16(uint32_t u) {
    return u & 0x7c00 ? u : u & 0x8000;
}

static inline uint32_t flushed_f32(uint32_t u) {
    return u & 0x7f800000 ? u : u & 0x80000000;
}

static inline bool is_snan32(uint32_t u) {
    return (u & 0x7fffffff) > 0x7f800000 && !(u & 0x00400000);
}

static inline bool is_nan32(uint32_t u) {
    return (u & 0x7fffffff) > 0x7f800000;
}

/* Computes IEEE minNum and maxNum as the hardware does. -0 is below +0. A signalling NaN is
 * quietened and returned if MODE.IEEE is set. */
static inline uint32_t min_max_f32_bits(uint32_t a, uint32_t b, bool ieee, bool max) {
    float x = f32_of(a), y = f32_of(b);
    bool first = max ? x > y || (x == y && !(a >> 31)) : x < y || (x == y && a >> 31);
    uint32_t r = first ? a : b;
    r = is_nan32(a) ? b : r;
    r = is_nan32(b) ? a : r;
    r = ieee && is_snan32(b) ? b : r;
    r = ieee && is_snan32(a) ? a : r;
    return is_nan32(r) ? r | 0x00400000 : r;
}

static inline uint32_t min_f32_bits(uint32_t a, uint32_t b, bool ieee) {
    return min_max_f32_bits(a, b, ieee, false);
}

static inline uint32_t max_f32_bits(uint32_t a, uint32_t b, bool ieee) {
    return min_max_f32_bits(a, b, ieee, true);
}

static inline bool is_snan64(uint64_t u) {
    return (u & INT64_MAX) > 0x7ff0000000000000 && !(u & 0x0008000000000000);
}

static inline uint64_t min_max_f64_bits(uint64_t a, uint64_t b, bool ieee, bool max) {
    double x = f64_of(a), y = f64_of(b);
    uint64_t nan_a = (a & INT64_MAX) > 0x7ff0000000000000;
    uint64_t nan_b = (b & INT64_MAX) > 0x7ff0000000000000;
    bool first = max ? x > y || (x == y && !(a >> 63)) : x < y || (x == y && a >> 63);
    uint64_t r = first ? a : b;
    r = nan_a ? b : r;
    r = nan_b ? a : r;
    r = ieee && is_snan64(b) ? b : r;
    r = ieee && is_snan64(a) ? a : r;
    return (r & INT64_MAX) > 0x7ff0000000000000 ? r | 0x0008000000000000 : r;
}

/* Computes minNum and maxNum of f16 numbers. Compares the numbers as f32, but tests the NaNs as
 * f16: bit 9 of an f16 NaN is the quiet bit. */
static inline uint16_t min_max_f16_bits(uint16_t a, uint16_t b, bool ieee, bool max) {
    float x = f16_of(a), y = f16_of(b);
    bool nan_a = (a & 0x7fff) > 0x7c00, nan_b = (b & 0x7fff) > 0x7c00;
    bool first = max ? x > y || (x == y && !(a >> 15)) : x < y || (x == y && a >> 15);
    uint16_t r = first ? a : b;
    r = nan_a ? b : r;
    r = nan_b ? a : r;
    r = ieee && nan_b && !(b & 0x200) ? b : r;
    r = ieee && nan_a && !(a & 0x200) ? a : r;
    return (r & 0x7fff) > 0x7c00 ? r | 0x200 : r;
}

/* Converts a float to an integer as the hardware does: rounds toward zero, saturates, and converts
 * NaN to 0. */
static inline int32_t i32_of_f64(double x) {
    x = x != x ? 0 : x;
    x = x < -2147483648.0 ? -2147483648.0 : x;
    x = x > 2147483647.0 ? 2147483647.0 : x;
    return (int32_t)x;
}

static inline uint32_t u32_of_f64(double x) {
    x = x > 0 ? x : 0; /* also NaN */
    x = x > 4294967295.0 ? 4294967295.0 : x;
    return (uint32_t)(int64_t)x;
}

static inline int32_t i32_of_f32(float x) {
    int32_t r = (int32_t)(x >= -2147483648.0f && x < 2147483648.0f ? x : 0);
    r = x >= 2147483648.0f ? INT32_MAX : r;
    return x < -2147483648.0f ? INT32_MIN : r;
}

/* Computes ldexp with one rounding, even beyond scalbn's exponent range. */
static inline float scaled_f32(float x, int32_t n) {
    n = n < -300 ? -300 : n > 300 ? 300 : n;
    return (float)((double)x * f64_of((uint64_t)(1023 + n) << 52));
}

#endif
