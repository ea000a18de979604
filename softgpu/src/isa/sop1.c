/* Implements SOP1: instructions with one scalar source, including EXEC mask operations, calls and
 * returns. */
#include "exec.h"
#include "scalar.h"

S_OP(mov_b32, uint32_t, a)
S_OP(mov_b64, uint64_t, a)
S_LOGIC(not_b32, uint32_t, ~a)
S_LOGIC(not_b64, uint64_t, ~a)

/* Returns a word in which the lowest bit of each four-bit group is 1 if any bit of the group is 1
 * in `a`. */
static uint64_t quads(uint64_t a) {
    return (a | a >> 1 | a >> 2 | a >> 3) & 0x1111111111111111;
}

static uint64_t pack_quads(uint64_t a) {
    uint64_t r = 0;
    for (unsigned n = 0; n < 16; n++)
        r |= (quads(a) >> 4 * n & 1) << n;
    return r;
}

S_LOGIC(wqm_b32, uint32_t, quads(a) * 15)
S_LOGIC(wqm_b64, uint64_t, quads(a) * 15)
S_LOGIC(quadmask_b32, uint32_t, pack_quads(a))
S_LOGIC(quadmask_b64, uint64_t, pack_quads(a))

static uint64_t reverse(uint64_t a) {
    uint64_t r = 0;
    for (unsigned n = 0; n < 64; n++)
        r |= (a >> n & 1) << (63 - n);
    return r;
}

S_OP(brev_b32, uint32_t, reverse(a) >> 32)
S_OP(brev_b64, uint64_t, reverse(a))
S_LOGIC(bcnt0_i32_b32, uint32_t, 32 - __builtin_popcount(a))
S_LOGIC(bcnt0_i32_b64, uint64_t, 64 - __builtin_popcountll(a))
S_LOGIC(bcnt1_i32_b32, uint32_t, __builtin_popcount(a))
S_LOGIC(bcnt1_i32_b64, uint64_t, __builtin_popcountll(a))
S_OP(ff0_i32_b32, uint32_t, ~a ? __builtin_ctz(~a) : -1)
S_OP(ff0_i32_b64, uint64_t, ~a ? __builtin_ctzll(~a) : -1)
S_OP(ff1_i32_b32, uint32_t, a ? __builtin_ctz(a) : -1)
S_OP(ff1_i32_b64, uint64_t, a ? __builtin_ctzll(a) : -1)
S_OP(flbit_i32_b32, uint32_t, a ? __builtin_clz(a) : -1)
S_OP(flbit_i32_b64, uint64_t, a ? __builtin_clzll(a) : -1)
/* Counts the leading bits that equal the sign bit. */
S_OP(flbit_i32, int32_t, a != 0 && a != -1 ? __builtin_clz((uint32_t)(a ^ a >> 31)) : -1)
S_OP(flbit_i32_i64, int64_t, a != 0 && a != -1 ? __builtin_clzll((uint64_t)(a ^ a >> 63)) : -1)
S_OP(sext_i32_i8, int8_t, (uint32_t)(int32_t)a)
S_OP(sext_i32_i16, int16_t, (uint32_t)(int32_t)a)
S_LOGIC(abs_i32, uint32_t, (int32_t)a < 0 ? -a : a)

static uint64_t bitreplicate_b64_b32(struct wave *w, uint64_t a, uint64_t b) {
    (void)w, (void)b;
    uint64_t r = 0;
    for (unsigned n = 0; n < 32; n++)
        r |= (a >> n & 1) * 3 << 2 * n;
    return r;
}

/* Defines an instruction that computes a new EXEC, `r`, from the old one and the source, and stores
 * one of the two in the destination. */
#define EXEC_OP(name, expr, stored)                                                                \
    static uint64_t name(struct wave *w, uint64_t a, uint64_t b) {                                 \
        (void)b;                                                                                   \
        uint64_t exec = wave_exec(w), r = expr;                                                    \
        set_sgpr64(w, SGPR_EXEC, r);                                                               \
        w->scc = r != 0;                                                                           \
        return stored;                                                                             \
    }

EXEC_OP(and_saveexec_b64, a &exec, exec)
EXEC_OP(or_saveexec_b64, a | exec, exec)
EXEC_OP(xor_saveexec_b64, a ^ exec, exec)
EXEC_OP(andn2_saveexec_b64, a & ~exec, exec)
EXEC_OP(orn2_saveexec_b64, a | ~exec, exec)
EXEC_OP(nand_saveexec_b64, ~(a &exec), exec)
EXEC_OP(nor_saveexec_b64, ~(a | exec), exec)
EXEC_OP(xnor_saveexec_b64, ~(a ^ exec), exec)
EXEC_OP(andn1_saveexec_b64, ~a &exec, exec)
EXEC_OP(orn1_saveexec_b64, ~a | exec, exec)
EXEC_OP(andn1_wrexec_b64, ~a &exec, r)
EXEC_OP(andn2_wrexec_b64, a & ~exec, r)

static uint64_t next_pc(const struct wave *w) {
    return w->code->va + w->next->offset;
}

static uint64_t getpc_b64(struct wave *w, uint64_t a, uint64_t b) {
    (void)a, (void)b;
    return next_pc(w);
}

/* The functions below use more than the source's value: the destination's old value, the
 * destination's number, or the address of the wave's code. */
static uint64_t setpc_b64(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    softgpu_wave_jump(w, w->next - 1, a);
    return 0;
}

static uint64_t swappc_b64(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    uint64_t back = next_pc(w);
    softgpu_wave_jump(w, w->next - 1, a);
    return back;
}

S_OP(bitset0_b32, uint64_t, b & ~(1ull << (a & 31)))
S_OP(bitset1_b32, uint64_t, b | 1ull << (a & 31))
S_OP(bitset0_b64, uint64_t, b & ~(1ull << (a & 63)))
S_OP(bitset1_b64, uint64_t, b | 1ull << (a & 63))
S_OP(cmov_b32, uint64_t, w->scc ? a : b)
S_OP(cmov_b64, uint64_t, w->scc ? a : b)

static uint64_t set_gpr_idx_idx(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    w->s[SGPR_M0] = (w->s[SGPR_M0] & ~0xffu) | (a & 0xff);
    return 0;
}

/* Returns the register of a relative move: the sum of the operand's register number and M0. */
static uint64_t relative(struct wave *w, const struct inst *i, const struct operand *o) {
    unsigned r = o->reg + w->s[SGPR_M0];
    if (o->kind != O_SGPR || r + 1 >= SGPR_FLAT_SCRATCH) {
        softgpu_wave_fault(w, i, -1, "M0 = %u leads outside the scalar registers", w->s[SGPR_M0]);
        return 0;
    }
    return r;
}

static uint64_t movrels_b32(struct wave *w, uint64_t a, uint64_t b) {
    (void)a, (void)b;
    return w->s[relative(w, w->next - 1, &w->next[-1].src[0])];
}

static uint64_t movrels_b64(struct wave *w, uint64_t a, uint64_t b) {
    (void)a, (void)b;
    return sgpr64(w, (unsigned)relative(w, w->next - 1, &w->next[-1].src[0]));
}

/* Writes the register that M0 selects. Returns the current value of the instruction's destination,
 * because the handler stores the returned value in this destination. */
static uint64_t movreld_b32(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    const struct operand *dst = &w->next[-1].dst;
    w->s[relative(w, w->next - 1, dst)] = (uint32_t)a;
    return read_scalar(w, dst);
}

static uint64_t movreld_b64(struct wave *w, uint64_t a, uint64_t b) {
    (void)b;
    const struct operand *dst = &w->next[-1].dst;
    set_sgpr64(w, (unsigned)relative(w, w->next - 1, dst), a);
    return read_scalar(w, dst);
}

/* Calls the row's function with two arguments: the source, and the destination's old value. */
void softgpu_run_sop1(struct wave *w, const struct inst *i) {
    uint64_t a = i->src[0].kind ? read_scalar(w, &i->src[0]) : 0;
    uint64_t old = i->dst.kind ? read_scalar(w, &i->dst) : 0;
    uint64_t r = i->row->fn.scalar(w, a, old);
    if (i->dst.kind)
        write_scalar(w, &i->dst, r);
}

static const struct row rows[] = {
#define ROW SROW
#include "sop1.def"
#undef ROW
};

const struct rows softgpu_rows_sop1 = FAMILY(rows);
