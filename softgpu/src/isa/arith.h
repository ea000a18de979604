/* Implements the arithmetic that VOP2, VOP3 and VOP3P share. */
#ifndef SOFTGPU_ARITH_H
#define SOFTGPU_ARITH_H

#include "lanes.h"

/* Defines an instruction as two functions, one for each value of the clamp bit. */
#define SATURATING2(name, D, A, B, expr, clamped)                                                  \
    OP2(name##_wrapping, D, A, B, expr)                                                            \
    OP2(name##_clamped, D, A, B, clamped)                                                          \
    static void name(struct lanes *o) {                                                            \
        (o->i->clamp ? name##_clamped : name##_wrapping)(o);                                       \
    }

#define SATURATING3(name, D, A, B, C, expr, clamped)                                               \
    OP3(name##_wrapping, D, A, B, C, expr)                                                         \
    OP3(name##_clamped, D, A, B, C, clamped)                                                       \
    static void name(struct lanes *o) {                                                            \
        (o->i->clamp ? name##_clamped : name##_wrapping)(o);                                       \
    }

/* Minimum, maximum and median depend on MODE.IEEE. */
#define MINMAX2(name, D, A, expr)                                                                  \
    VECTORISED static void name(struct lanes *o) {                                                 \
        bool ieee = IEEE(o);                                                                       \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b;                                                     \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            __auto_type b = LOAD_##A(pb);                                                          \
            STORE_##D(expr);                                                                       \
        }                                                                                          \
    }

#define MINMAX3(name, D, A, expr)                                                                  \
    VECTORISED static void name(struct lanes *o) {                                                 \
        bool ieee = IEEE(o);                                                                       \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b, *pc = o->c;                                         \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            __auto_type b = LOAD_##A(pb);                                                          \
            __auto_type c = LOAD_##A(pc);                                                          \
            STORE_##D(expr);                                                                       \
        }                                                                                          \
    }

static inline int32_t sext24(int32_t x) {
    return (int32_t)((uint32_t)x << 8) >> 8;
}

static inline uint32_t saturate_u32(int64_t x) {
    return x < 0 ? 0 : x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static inline int32_t saturate_i32(int64_t x) {
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

static inline uint32_t saturate_u16(int32_t x) {
    return x < 0 ? 0 : x > 65535 ? 65535 : x;
}
static inline int32_t saturate_i16(int32_t x) {
    return x < -32768 ? -32768 : x > 32767 ? 32767 : x;
}

/* Computes an f16 fma with f64 arithmetic. The product is exact in f64. The sum is exact, or its
 * error cannot create a tie when the sum is rounded to f16. */
static inline uint16_t fma_f16_bits(uint16_t a, uint16_t b, uint16_t c) {
    double product = (double)f16_of(a) * (double)f16_of(b), sum = product + (double)f16_of(c);
    /* Rounds the sum to f32, to odd: an odd last bit records the lost bits for the second rounding,
     * which gives f16. */
    float f = (float)sum;
    uint32_t u = bits_of_f32(f);
    if ((double)f != sum && sum == sum && !isinf(f)) {
        bool above = f > 0 ? (double)f > sum : (double)f < sum;
        u = above ? u - 1 : u;
        u |= 1;
    }
    return bits_of_f16(f32_of(u));
}

static inline uint32_t pk_fma(uint32_t a, uint32_t b, uint32_t c) {
    return fma_f16_bits((uint16_t)a, (uint16_t)b, (uint16_t)c) |
           (uint32_t)fma_f16_bits(a >> 16, b >> 16, c >> 16) << 16;
}

static inline float dot2_f32(uint32_t a, uint32_t b, float c) {
    float lo = f16_of((uint16_t)a) * f16_of((uint16_t)b);
    float hi = f16_of((uint16_t)(a >> 16)) * f16_of((uint16_t)(b >> 16));
    return hi + (lo + c);
}

/* Computes gfx90a's dot product, which flushes denormal inputs and results in every mode. */
static inline float flushed_dot2_f32(uint32_t a, uint32_t b, float c) {
    uint32_t x = flushed_f16(a & 0xffff) | flushed_f16(a >> 16) << 16;
    uint32_t y = flushed_f16(b & 0xffff) | flushed_f16(b >> 16) << 16;
    return f32_of(flushed_f32(bits_of_f32(dot2_f32(x, y, f32_of(flushed_f32(bits_of_f32(c)))))));
}

static inline int64_t dot2_i16(uint32_t a, uint32_t b) {
    return (int64_t)(int16_t)a * (int16_t)b + (int64_t)(int16_t)(a >> 16) * (int16_t)(b >> 16);
}

static inline int64_t dot2_u16(uint32_t a, uint32_t b) {
    return (int64_t)(a & 0xffff) * (b & 0xffff) + (int64_t)(a >> 16) * (b >> 16);
}

static inline int64_t dot4_i8(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int n = 0; n < 32; n += 8)
        sum += (int8_t)(a >> n) * (int8_t)(b >> n);
    return sum;
}

static inline int64_t dot4_u8(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int n = 0; n < 32; n += 8)
        sum += (uint8_t)(a >> n) * (uint8_t)(b >> n);
    return sum;
}

static inline int64_t dot8_i4(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int n = 28; n >= 0; n -= 4)
        sum += ((int32_t)(a << n) >> 28) * ((int32_t)(b << n) >> 28);
    return sum;
}

static inline int64_t dot8_u4(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int n = 0; n < 32; n += 4)
        sum += (int32_t)((a >> n & 15) * (b >> n & 15));
    return sum;
}

#endif
