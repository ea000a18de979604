/* Implements SMFMAC: D += A B with a sparse matrix A. Only two of every four consecutive elements
 * in a row of A are stored. Each stored element has a two-bit index: the element's position in the
 * group of four. The index is in a register of the lane that contains the element.
 *
 * The index register of a lane contains several sets of indices. If cbsz is 0, abid selects a set;
 * otherwise SMFMAC uses the first set. The two indices of a group may be equal, and may have any
 * order. SMFMAC multiplies each stored element of A by the element of B that the index selects. */
#include "matrix.h"

#include <math.h>

/* The maximum number of stored elements of A in a wave; B has twice as many elements. */
enum { MOST_STORED = 8 * LANES };

/* The place of a stored element of A: the lane, the position in the lane, and the column k. */
struct stored {
    uint8_t lane, element, k;
};

static const char *undefined_set(const struct inst *i, unsigned sets) {
    if (i->cbsz > 3)
        return "sparse matrices have no cbsz beyond 3";
    return i->abid >= sets ? "abid asks for more indices than a register has" : NULL;
}

static uint32_t indices_of(const struct wave *w, const struct operand *o, unsigned lane) {
    return o->kind == O_VGPR ? w->v[o->reg][lane] : (uint32_t)o->bits;
}

static void find_stored(const struct wave *w, const struct inst *i, const struct shape *s,
                        struct stored *all) {
    unsigned dense = per_lane(s), each = dense / 2, set = i->cbsz ? 0 : i->abid;
    for (unsigned row = 0; row < s->m; row++)
        for (unsigned n = 0; n < s->k / 2; n++) {
            unsigned group = n / each, e = n % each, lane = group * s->m + row;
            unsigned index = indices_of(w, &i->src[2], lane) >> 2 * (set * each + e) & 3;
            all[row * s->k / 2 + n] = (struct stored){(uint8_t)lane, (uint8_t)e,
                                                      (uint8_t)(group * dense + e / 2 * 4 + index)};
        }
}

static int int8_at(const struct wave *w, unsigned reg, unsigned lane, unsigned e) {
    return (int8_t)(w->v[reg + e / 4][lane] >> 8 * (e % 4));
}

static void run_float(struct wave *w, const struct inst *i, const struct shape *s,
                      const struct stored *all) {
    float a[MOST_STORED], b[2 * MOST_STORED];
    unsigned dense = per_lane(s), half = s->k / 2;
    for (unsigned n = 0; n < s->m * half; n++)
        a[n] = element(w, i->src[0].reg, s, MATRIX_A, all[n].lane, all[n].element);
    for (unsigned k = 0; k < s->k; k++)
        for (unsigned column = 0; column < s->m; column++)
            b[k * s->m + column] =
                element(w, i->src[1].reg, s, MATRIX_B, k / dense * s->m + column, k % dense);
    for (unsigned row = 0; row < s->m; row++)
        for (unsigned column = 0; column < s->m; column++) {
            struct cell at = cell_of(s, 0, row, column);
            uint32_t *d = &w->v[i->dst.reg + at.reg][at.lane];
            float sum = f32_of(*d);
            for (unsigned n = row * half; n < (row + 1) * half; n++)
                sum = fmaf(a[n], b[all[n].k * s->m + column], sum);
            *d = bits_of_f32(sum);
        }
}

static void run_int(struct wave *w, const struct inst *i, const struct shape *s,
                    const struct stored *all) {
    int a[MOST_STORED], b[2 * MOST_STORED];
    unsigned dense = per_lane(s), half = s->k / 2;
    for (unsigned n = 0; n < s->m * half; n++)
        a[n] = int8_at(w, i->src[0].reg, all[n].lane, all[n].element);
    for (unsigned k = 0; k < s->k; k++)
        for (unsigned column = 0; column < s->m; column++)
            b[k * s->m + column] = int8_at(w, i->src[1].reg, k / dense * s->m + column, k % dense);
    for (unsigned row = 0; row < s->m; row++)
        for (unsigned column = 0; column < s->m; column++) {
            struct cell at = cell_of(s, 0, row, column);
            uint32_t sum = 0;
            for (unsigned n = row * half; n < (row + 1) * half; n++)
                sum += (uint32_t)(a[n] * b[all[n].k * s->m + column]);
            w->v[i->dst.reg + at.reg][at.lane] += sum;
        }
}

/* SMFMAC ignores EXEC, so all lanes take part. */
void softgpu_run_smfmac(struct wave *w, const struct inst *i) {
    struct shape s = shape_of(i->row);
    struct stored all[MOST_STORED];
    const char *undefined = undefined_set(i, 32 / per_lane(&s));
    if (undefined) {
        softgpu_wave_fault(w, i, -1, "%s", undefined);
        return;
    }
    find_stored(w, i, &s, all);
    if (s.kind == MF_I8)
        run_int(w, i, &s, all);
    else
        run_float(w, i, &s, all);
}
