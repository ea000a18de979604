/* Implements MFMA: a wave multiplies small matrices that are distributed over its lanes.
 *
 * A is M x K, B is K x M, C and D are M x M, in one or more independent blocks. Each lane holds E
 * elements of one row of A (or column of B), with consecutive k. Lane l + M holds the next E
 * elements of lane l's row. After the row's last element, lane l + M holds elements of the next
 * block. */
#include "lanes.h"
#include "matrix.h"
#include "operand.h"

#define MFMA(kind, m, k, blocks) ((kind) | (m) << 4 | (k) << 12 | (blocks) << 20)
#define SPARSE(kind, m, k, blocks) (SPARSE_MATRIX | MFMA(kind, m, k, blocks))

/* Size of the arrays A[block][k][i] and B[block][k][j]: 64 lanes with at most 8 elements. */
enum { MOST = 8 * LANES };

/* Returns the index of a lane's element e in an array of A or B. The modifiers cbsz and abid let
 * several blocks share one A. */
static unsigned place(const struct shape *s, unsigned lane, unsigned e) {
    unsigned each = per_lane(s), column = lane % s->m, group = lane / s->m;
    unsigned groups = s->k / each, block = group / groups, k = each * (group % groups) + e;
    return (block * s->k + k) * s->m + column;
}

static unsigned source_block(const struct inst *i, unsigned block) {
    unsigned mask = (1u << i->cbsz) - 1;
    return (block & ~mask) + i->abid;
}

/* Returns the lane whose registers contain the elements of B for `lane`. The README of AMD's
 * amd_matrix_instruction_calculator describes BLGP, which selects this lane. */
static unsigned source_lane(const struct inst *i, unsigned lane) {
    switch (i->blgp) {
    case 0:
        return lane;
    case 1: /* copies the first or the second half to both halves */
    case 2:
        return 32 * (i->blgp - 1u) + lane % 32;
    case 3:
        return (lane + 16) % LANES;
    default: /* copies one quarter to all quarters */
        return 16 * (i->blgp - 4u) + lane % 16;
    }
}

/* Returns why AMD's amd_matrix_instruction_calculator rejects these modifiers, or NULL. */
static const char *undefined_pattern(const struct wave *w, const struct inst *i,
                                     const struct shape *s) {
    if (s->kind == MF_F64 && w->code->target == GFX942)
        return i->cbsz || i->abid ? "f64 matrices have no cbsz and abid" : NULL;
    if (s->kind == MF_F64)
        return i->blgp || i->cbsz || i->abid ? "f64 matrices have no cbsz, abid and blgp" : NULL;
    if (1u << i->cbsz > s->blocks)
        return "cbsz asks for more blocks than there are";
    return i->abid >> i->cbsz ? "abid is not among the blocks that cbsz asks for" : NULL;
}

/* Returns an element of C; if C is a constant, all elements are equal. */
static uint32_t initial(const struct wave *w, const struct inst *i, struct cell at) {
    const struct operand *c = &i->src[2];
    return c->kind == O_VGPR ? w->v[c->reg + at.reg][at.lane] : (uint32_t)c->bits;
}

/* Adds products to sums in f32, in the order of k, with one rounding for each step. */
VECTORISED static void accumulate(float *sum, const float *a, const float *b, unsigned m,
                                  unsigned k) {
    for (unsigned n = 0; n < k; n++)
        for (unsigned row = 0; row < m; row++)
            for (unsigned column = 0; column < m; column++)
                sum[row * m + column] =
                    fmaf(a[n * m + row], b[n * m + column], sum[row * m + column]);
}

static void run_float(struct wave *w, const struct inst *i, const struct shape *s) {
    float a[MOST], b[MOST], sum[32 * 32];
    uint32_t d[32][LANES];
    bool flush = flushes(w, s);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned e = 0; e < per_lane(s); e++) {
            unsigned at = place(s, lane, e);
            a[at] = element(w, i->src[0].reg, s, MATRIX_A, lane, e);
            b[at] = element(w, i->src[1].reg, s, MATRIX_B, source_lane(i, lane), e);
        }
    for (unsigned block = 0; block < s->blocks; block++) {
        for (unsigned row = 0; row < s->m; row++)
            for (unsigned column = 0; column < s->m; column++) {
                uint32_t c = initial(w, i, cell_of(s, block, row, column));
                sum[row * s->m + column] = f32_of(flush ? flushed_f32(c) : c);
            }
        unsigned size = s->k * s->m;
        accumulate(sum, a + source_block(i, block) * size, b + block * size, s->m, s->k);
        for (unsigned row = 0; row < s->m; row++)
            for (unsigned column = 0; column < s->m; column++) {
                struct cell at = cell_of(s, block, row, column);
                uint32_t u = bits_of_f32(sum[row * s->m + column]);
                d[at.reg][at.lane] = flush ? flushed_f32(u) : u;
            }
    }
    memcpy(w->v[i->dst.reg], d, softgpu_type_dwords(i->row->dst) * sizeof d[0]);
}

static void run_int(struct wave *w, const struct inst *i, const struct shape *s) {
    int8_t a[MOST], b[MOST];
    uint32_t d[32][LANES];
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned e = 0; e < per_lane(s); e++) {
            unsigned at = place(s, lane, e), word = e / 4, shift = 8 * (e % 4);
            a[at] = (int8_t)(w->v[i->src[0].reg + word][lane] >> shift);
            b[at] = (int8_t)(w->v[i->src[1].reg + word][source_lane(i, lane)] >> shift);
        }
    unsigned size = s->k * s->m;
    for (unsigned block = 0; block < s->blocks; block++)
        for (unsigned row = 0; row < s->m; row++)
            for (unsigned column = 0; column < s->m; column++) {
                struct cell at = cell_of(s, block, row, column);
                const int8_t *x = a + source_block(i, block) * size, *y = b + block * size;
                uint32_t sum = initial(w, i, at);
                for (unsigned k = 0; k < s->k; k++)
                    sum += (uint32_t)(x[k * s->m + row] * y[k * s->m + column]);
                d[at.reg][at.lane] = sum;
            }
    memcpy(w->v[i->dst.reg], d, softgpu_type_dwords(i->row->dst) * sizeof d[0]);
}

static double double_at(const struct wave *w, unsigned reg, unsigned lane) {
    return f64_of(w->v[reg][lane] | (uint64_t)w->v[reg + 1][lane] << 32);
}

/* Runs f64 instructions, whose matrices have layouts of their own. Consecutive rows of D are in
 * lanes that are 16 apart; every fourth row begins a new pair of registers. In 4x4x4, each group of
 * 16 lanes holds the elements of A and B with one k, for all four blocks. */
static void run_double(struct wave *w, const struct inst *i, const struct shape *s) {
    uint32_t d[8][LANES];
    /* On gfx942, the blgp bits negate A, B and C. */
    double sign_a = i->blgp & 1 ? -1 : 1, sign_b = i->blgp & 2 ? -1 : 1;
    double sign_c = i->blgp & 4 ? -1 : 1;
    unsigned block_step = s->m == 4 ? 4 : 0, regs = s->m / 4;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned r = 0; r < (s->m == 4 ? 1 : regs); r++) {
            unsigned row = lane / 16 + 4 * r, column = lane % s->m;
            unsigned block = s->m == 4 ? lane % 16 / 4 : 0;
            const struct operand *c = &i->src[2];
            double sum = c->kind == O_VGPR ? double_at(w, c->reg + 2 * r, lane) : f64_of(c->bits);
            sum *= sign_c;
            for (unsigned k = 0; k < 4; k++) {
                unsigned a_lane = 16 * k + block_step * block + row;
                unsigned b_lane = 16 * k + block_step * block + column;
                sum = fma(sign_a * double_at(w, i->src[0].reg, a_lane),
                          sign_b * double_at(w, i->src[1].reg, b_lane), sum);
            }
            d[2 * r][lane] = (uint32_t)bits_of_f64(sum);
            d[2 * r + 1][lane] = (uint32_t)(bits_of_f64(sum) >> 32);
        }
    memcpy(w->v[i->dst.reg], d, softgpu_type_dwords(i->row->dst) * sizeof d[0]);
}

/* MFMA ignores EXEC, so all lanes take part. */
void softgpu_run_mfma(struct wave *w, const struct inst *i) {
    struct shape s = shape_of(i->row);
    const char *undefined = undefined_pattern(w, i, &s);
    if (undefined) {
        softgpu_wave_fault(w, i, -1, "%s", undefined);
        return;
    }
    if (s.kind == MF_F64)
        run_double(w, i, &s);
    else if (s.kind == MF_I8)
        run_int(w, i, &s);
    else
        run_float(w, i, &s);
}

static const struct row rows[] = {
#define ROW INFO_ROW
#include "mfma.def"
#undef ROW
};

const struct rows softgpu_rows_mai = FAMILY(rows);
