/* Implements gfx942's 8-bit floats (FNUZ), which have one zero, no infinity, and 0x80 as the only
 * NaN. */
#ifndef SOFTGPU_FLOAT8_H
#define SOFTGPU_FLOAT8_H

#include "fp.h"

struct float8 {
    int mantissa, bias; /* mantissa in bits; an exponent of 1 means 2^(1 - bias) */
    float largest;
};

static const struct float8 softgpu_fp8 = {3, 8, 240.0f}, softgpu_bf8 = {2, 16, 57344.0f};

enum { FLOAT8_NAN = 0x80 };

static inline float f32_of_float8(const struct float8 *f, uint8_t bits) {
    int exponent = (bits & 0x7f) >> f->mantissa, rest = bits & ((1 << f->mantissa) - 1);
    if (bits == FLOAT8_NAN)
        return f32_of(0x7fc00000);
    int units = exponent ? rest + (1 << f->mantissa) : rest;
    float value = ldexpf((float)units, (exponent ? exponent : 1) - f->bias - f->mantissa);
    return bits & 0x80 ? -value : value;
}

/* Converts f32 to an 8-bit float, and rounds to nearest even. An overflow gives the largest number
 * if MODE.FP16_OVFL is set, and NaN otherwise; infinity gives NaN. */
static inline uint8_t float8_of_f32(const struct float8 *f, float x, bool saturates) {
    float size = fabsf(x);
    if (!(size < INFINITY))
        return FLOAT8_NAN;
    int exponent = size > 0 ? ilogbf(size) : 1 - f->bias;
    if (exponent < 1 - f->bias)
        exponent = 1 - f->bias;
    float units = roundevenf(ldexpf(size, f->mantissa - exponent));
    if (ldexpf(units, exponent - f->mantissa) > f->largest) {
        if (!saturates)
            return FLOAT8_NAN;
        units = ldexpf(f->largest, f->mantissa - (exponent = ilogbf(f->largest)));
    }
    /* If rounding carries the mantissa to the next power of two, adding `units` increments the
     * exponent. */
    int bits = ((exponent + f->bias - 1) << f->mantissa) + (int)units;
    return (uint8_t)(bits ? bits | (signbit(x) ? 0x80 : 0) : 0);
}

#endif
