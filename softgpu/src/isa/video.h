/* Implements sums of absolute differences, byte permutations, cube maps and medians. */
#ifndef SOFTGPU_VIDEO_H
#define SOFTGPU_VIDEO_H

#include "arith.h"
#include "transcendental.h"

#define MIN3(a, b, c) ((a) < (b) ? ((a) < (c) ? (a) : (c)) : ((b) < (c) ? (b) : (c)))
#define MAX3(a, b, c) ((a) > (b) ? ((a) > (c) ? (a) : (c)) : ((b) > (c) ? (b) : (c)))
#define MED3(a, b, c)                                                                              \
    ((a) < (b) ? ((b) < (c)   ? (b)                                                                \
                  : (a) < (c) ? (c)                                                                \
                              : (a))                                                               \
               : ((a) < (c)   ? (a)                                                                \
                  : (b) < (c) ? (c)                                                                \
                              : (b)))

static inline uint32_t med3_f32_bits(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
    if (is_nan32(a) || is_nan32(b) || is_nan32(c))
        return min_f32_bits(min_f32_bits(a, b, ieee), c, ieee);
    uint32_t low = min_f32_bits(a, b, ieee), high = max_f32_bits(a, b, ieee);
    return max_f32_bits(low, min_f32_bits(high, c, ieee), ieee);
}

static inline uint16_t min3_f16_bits(uint32_t a, uint32_t b, uint32_t c, bool ieee, bool max) {
    uint16_t first = min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, max);
    return min_max_f16_bits(first, (uint16_t)c, ieee, max);
}

static inline uint16_t med3_f16_bits(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
    if ((a & 0x7fff) > 0x7c00 || (b & 0x7fff) > 0x7c00 || (c & 0x7fff) > 0x7c00)
        return min3_f16_bits(a, b, c, ieee, false);
    uint16_t low = min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, false);
    uint16_t high = min_max_f16_bits((uint16_t)a, (uint16_t)b, ieee, true);
    return min_max_f16_bits(low, min_max_f16_bits(high, (uint16_t)c, ieee, false), ieee, true);
}

static inline int32_t bfe_signed(uint32_t x, unsigned offset, unsigned width) {
    if (width == 0)
        return 0;
    /* The bits above the source's highest bit are copies of the sign bit. */
    uint32_t shifted = (uint32_t)((int32_t)x >> offset);
    return (int32_t)(shifted << (32 - width)) >> (32 - width);
}

static inline uint32_t distance(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}

static inline uint32_t sad4(uint32_t a, uint32_t b) {
    uint32_t sum = 0;
    for (int n = 0; n < 32; n += 8)
        sum += distance(a >> n & 0xff, b >> n & 0xff);
    return sum;
}

/* Sums absolute differences of bytes. Skips bytes whose reference byte is 0. */
static inline uint32_t masked_sad4(uint32_t a, uint32_t reference) {
    uint32_t sum = 0;
    for (int n = 0; n < 32; n += 8)
        sum += reference >> n & 0xff ? distance(a >> n & 0xff, reference >> n & 0xff) : 0;
    return sum;
}

static inline uint64_t qsad(uint64_t a, uint32_t b, uint64_t c, bool masked) {
    uint64_t r = 0;
    for (int n = 0; n < 4; n++) {
        uint32_t window = (uint32_t)(a >> 8 * n), add = (uint32_t)(c >> 16 * n) & 0xffff;
        uint32_t sum = (masked ? masked_sad4(window, b) : sad4(window, b)) + add;
        r |= (uint64_t)(sum & 0xffff) << 16 * n;
    }
    return r;
}

static inline uint32_t lerp_u8_of(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    for (int n = 0; n < 32; n += 8)
        r |= ((a >> n & 0xff) + (b >> n & 0xff) + (c >> n & 1)) >> 1 << n;
    return r;
}

static inline uint32_t insert_u8(float x, uint32_t where, uint32_t into) {
    unsigned shift = 8 * (where & 3);
    uint32_t value = x > 0 ? (x < 255 ? (uint32_t)x : 255) : 0;
    return (into & ~(0xffu << shift)) | value << shift;
}

static inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t select) {
    uint64_t in = (uint64_t)a << 32 | b;
    uint32_t r = 0;
    for (int n = 0; n < 32; n += 8) {
        uint32_t s = select >> n & 0xff, byte;
        if (s < 8)
            byte = in >> 8 * s & 0xff;
        else if (s < 12) /* the sign bit of one 16-bit part of `in`, copied to the whole byte */
            byte = in >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
        else
            byte = s == 12 ? 0 : 0xff;
        r |= byte << n;
    }
    return r;
}

static inline uint32_t f16_toward_zero(uint32_t u) {
    uint32_t mag = u & 0x7fffffff, sign = u >> 16 & 0x8000;
    if (mag > 0x7f800000)
        return sign | 0x7e00 | (mag >> 13 & 0x3ff);
    if (mag == 0x7f800000)
        return sign | 0x7c00;
    if (mag >= 143u << 23)
        return sign | 0x7bff;
    if (mag >= 113u << 23)
        return sign | (mag - (112u << 23)) >> 13;
    return sign | (uint32_t)(int32_t)(f32_of(mag) * 0x1p24f);
}

static inline bool z_is_major(float x, float y, float z) {
    return fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y);
}

static inline float cube_id(float x, float y, float z) {
    if (z_is_major(x, y, z))
        return z < 0 ? 5 : 4;
    if (fabsf(y) >= fabsf(x))
        return y < 0 ? 3 : 2;
    return x < 0 ? 1 : 0;
}

static inline float cube_sc(float x, float y, float z) {
    if (z_is_major(x, y, z))
        return z < 0 ? -x : x;
    if (fabsf(y) >= fabsf(x))
        return x;
    return x < 0 ? z : -z;
}

static inline float cube_tc(float x, float y, float z) {
    if (z_is_major(x, y, z))
        return -y;
    if (fabsf(y) >= fabsf(x))
        return y < 0 ? -z : z;
    return -y;
}

static inline float cube_major(float x, float y, float z) {
    return z_is_major(x, y, z) ? z : fabsf(y) >= fabsf(x) ? y : x;
}

#endif
