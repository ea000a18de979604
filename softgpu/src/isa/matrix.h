/* Maps the elements of dense or sparse matrices to a wave's registers. */
#ifndef SOFTGPU_MATRIX_H
#define SOFTGPU_MATRIX_H

#include "exec.h"
#include "families.h"
#include "float8.h"
#include "fp.h"

enum kind {
    MF_F32,
    MF_XF32, /* f32 with a mantissa of only 10 bits */
    MF_F16,
    MF_BF16,
    MF_F64,
    MF_I8,
    MF_BF8_BF8, /* the 8-bit float formats of A and B */
    MF_BF8_FP8,
    MF_FP8_BF8,
    MF_FP8_FP8,
};

struct shape {
    enum kind kind;
    unsigned m, k, blocks;
};

static inline struct shape shape_of(const struct row *row) {
    return (struct shape){.kind = row->info & 15,
                          .m = row->info >> 4 & 0xff,
                          .k = row->info >> 12 & 0xff,
                          .blocks = row->info >> 20 & 31};
}

/* Returns true for gfx90a's f16 and bf16 shapes, which flush denormal inputs and results to zero in
 * every mode. */
static inline bool flushes(const struct wave *w, const struct shape *s) {
    return w->code->target == GFX90A && (s->kind == MF_F16 || s->kind == MF_BF16);
}

enum matrix { MATRIX_A, MATRIX_B };

static inline const struct float8 *float8_of(const struct shape *s, enum matrix which) {
    bool bf8 = which == MATRIX_A ? s->kind == MF_BF8_BF8 || s->kind == MF_BF8_FP8
                                 : s->kind == MF_BF8_BF8 || s->kind == MF_FP8_BF8;
    return bf8 ? &softgpu_bf8 : &softgpu_fp8;
}

/* Returns a lane's element e of A or B. */
static inline float element(const struct wave *w, unsigned reg, const struct shape *s,
                            enum matrix which, unsigned lane, unsigned e) {
    uint32_t u;
    switch (s->kind) {
    case MF_F16:
        u = w->v[reg + e / 2][lane] >> 16 * (e & 1);
        return f16_of((uint16_t)(flushes(w, s) ? flushed_f16(u) : u));
    case MF_BF16:
        u = w->v[reg + e / 2][lane] >> 16 * (e & 1);
        return f32_of(flushes(w, s) ? flushed_f32(u << 16) : u << 16);
    case MF_XF32:
        return f32_of(w->v[reg + e][lane] & ~0x1fffu);
    case MF_F32:
        return f32_of(w->v[reg + e][lane]);
    default:
        return f32_of_float8(float8_of(s, which),
                             (uint8_t)(w->v[reg + e / 4][lane] >> 8 * (e % 4)));
    }
}

static inline unsigned per_lane(const struct shape *s) {
    return s->m * s->k * s->blocks / LANES;
}

/* The register and lane that contain the result element at a block, row and column. If M is 32 or
 * 16, a lane holds four consecutive rows of a column, in four registers. If lane l holds four rows,
 * lane l + M holds the next four rows. */
struct cell {
    unsigned reg, lane;
};

static inline struct cell cell_of(const struct shape *s, unsigned block, unsigned row,
                                  unsigned column) {
    if (s->m == 4)
        return (struct cell){row, block * 4 + column};
    unsigned halves = LANES / s->m, regs = s->m / halves;
    return (struct cell){block * regs + row / (4 * halves) * 4 + row % 4,
                         row / 4 % halves * s->m + column};
}

#endif
