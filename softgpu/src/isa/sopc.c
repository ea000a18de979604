/* Implements SOPC: scalar compares, which set SCC. */
#include "scalar.h"

#define COMPARE(name, T, expr)                                                                     \
    static uint64_t name(struct wave *w, uint64_t a_, uint64_t b_) {                               \
        T a = (T)a_, b = (T)b_;                                                                    \
        w->scc = expr;                                                                             \
        return 0;                                                                                  \
    }

COMPARE(cmp_eq_i32, int32_t, a == b)
COMPARE(cmp_lg_i32, int32_t, a != b)
COMPARE(cmp_gt_i32, int32_t, a > b)
COMPARE(cmp_ge_i32, int32_t, a >= b)
COMPARE(cmp_lt_i32, int32_t, a < b)
COMPARE(cmp_le_i32, int32_t, a <= b)
COMPARE(cmp_eq_u32, uint32_t, a == b)
COMPARE(cmp_lg_u32, uint32_t, a != b)
COMPARE(cmp_gt_u32, uint32_t, a > b)
COMPARE(cmp_ge_u32, uint32_t, a >= b)
COMPARE(cmp_lt_u32, uint32_t, a < b)
COMPARE(cmp_le_u32, uint32_t, a <= b)
COMPARE(bitcmp0_b32, uint32_t, !(a >> (b & 31) & 1))
COMPARE(bitcmp1_b32, uint32_t, a >> (b & 31) & 1)
COMPARE(bitcmp0_b64, uint64_t, !(a >> (b & 63) & 1))
COMPARE(bitcmp1_b64, uint64_t, a >> (b & 63) & 1)
COMPARE(cmp_eq_u64, uint64_t, a == b)
COMPARE(cmp_lg_u64, uint64_t, a != b)

/* Makes the vector register numbers of later instructions relative to M0. The encoding of the
 * second source selects the operands whose register numbers become relative. The wave yields,
 * because run_wave runs waves with MODE_GPR_IDX in a separate loop. */
static uint64_t set_gpr_idx_on(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    w->mode |= MODE_GPR_IDX;
    w->s[SGPR_M0] = (w->s[SGPR_M0] & ~0xf0ffu) | (a & 0xff) | (w->next[-1].src[1].enc & 15u) << 12;
    w->stop = YIELDED;
    return 0;
}

void softgpu_run_sopc(struct wave *w, const struct inst *i) {
    i->row->fn.scalar(w, read_scalar(w, &i->src[0]), read_scalar(w, &i->src[1]));
}

static const struct row rows[] = {
#define ROW SROW
#include "sopc.def"
#undef ROW
};

const struct rows softgpu_rows_sopc = FAMILY(rows);
