/* Implements SOP2: instructions with two scalar sources. */
#include "scalar.h"

S_SCC(add_u32, uint32_t, a + b, r < a)
S_SCC(sub_u32, uint32_t, a - b, b > a)
S_SCC(add_i32, uint32_t, a + b, (~(a ^ b) & (a ^ r)) >> 31)
S_SCC(sub_i32, uint32_t, a - b, ((a ^ b) & (a ^ r)) >> 31)
S_SCC(addc_u32, uint32_t, a + b + w->scc, ((uint64_t)a + b + w->scc) >> 32)
S_SCC(subb_u32, uint32_t, a - b - w->scc, (uint64_t)b + w->scc > a)
S_SCC(min_i32, int32_t, a < b ? a : b, a < b)
S_SCC(min_u32, uint32_t, a < b ? a : b, a < b)
S_SCC(max_i32, int32_t, a >= b ? a : b, a >= b)
S_SCC(max_u32, uint32_t, a >= b ? a : b, a >= b)
S_OP(cselect_b32, uint32_t, w->scc ? a : b)
S_OP(cselect_b64, uint64_t, w->scc ? a : b)

S_LOGIC(and_b32, uint32_t, a &b)
S_LOGIC(and_b64, uint64_t, a &b)
S_LOGIC(or_b32, uint32_t, a | b)
S_LOGIC(or_b64, uint64_t, a | b)
S_LOGIC(xor_b32, uint32_t, a ^ b)
S_LOGIC(xor_b64, uint64_t, a ^ b)
S_LOGIC(andn2_b32, uint32_t, a & ~b)
S_LOGIC(andn2_b64, uint64_t, a & ~b)
S_LOGIC(orn2_b32, uint32_t, a | ~b)
S_LOGIC(orn2_b64, uint64_t, a | ~b)
S_LOGIC(nand_b32, uint32_t, ~(a &b))
S_LOGIC(nand_b64, uint64_t, ~(a &b))
S_LOGIC(nor_b32, uint32_t, ~(a | b))
S_LOGIC(nor_b64, uint64_t, ~(a | b))
S_LOGIC(xnor_b32, uint32_t, ~(a ^ b))
S_LOGIC(xnor_b64, uint64_t, ~(a ^ b))

S_LOGIC(lshl_b32, uint32_t, a << (b & 31))
S_LOGIC(lshl_b64, uint64_t, a << (b & 63))
S_LOGIC(lshr_b32, uint32_t, a >> (b & 31))
S_LOGIC(lshr_b64, uint64_t, a >> (b & 63))
S_LOGIC(ashr_i32, uint32_t, (int32_t)a >> (b & 31))
S_LOGIC(ashr_i64, uint64_t, (int64_t)a >> (b & 63))
S_OP(bfm_b32, uint32_t, (uint32_t)(((1u << (a & 31)) - 1) << (b & 31)))
S_OP(bfm_b64, uint32_t, ((1ull << (a & 63)) - 1) << (b & 63))
S_OP(mul_i32, uint32_t, (uint32_t)(a * b))
S_OP(mul_hi_u32, uint32_t, (uint64_t)a *b >> 32)
S_OP(mul_hi_i32, int32_t, (int64_t)a *b >> 32)

/* In bit-field instructions, b has the offset in its low bits, and the width from bit 16 on. */
static uint64_t low_bits(uint64_t x, unsigned width) {
    return width >= 64 ? x : x & ((1ull << width) - 1);
}

static uint64_t signed_bits(uint64_t x, unsigned width) {
    if (width == 0)
        return 0;
    return width >= 64 ? x : (uint64_t)((int64_t)(x << (64 - width)) >> (64 - width));
}

S_LOGIC(bfe_u32, uint32_t, low_bits(a >> (b & 31), b >> 16 & 0x7f))
/* The bits above the source's highest bit are copies of the sign bit. */
S_LOGIC(bfe_i32, uint32_t, signed_bits((uint64_t)((int32_t)a >> (b & 31)), b >> 16 & 0x7f))
S_LOGIC(bfe_u64, uint64_t, low_bits(a >> (b & 63), b >> 16 & 0x7f))
S_LOGIC(bfe_i64, uint64_t, signed_bits((uint64_t)((int64_t)a >> (b & 63)), b >> 16 & 0x7f))

S_LOGIC(absdiff_i32, uint32_t, (int32_t)(a - b) < 0 ? b - a : a - b)
S_SCC(lshl1_add_u32, uint32_t, (a << 1) + b, (((uint64_t)a << 1) + b) >> 32 != 0)
S_SCC(lshl2_add_u32, uint32_t, (a << 2) + b, (((uint64_t)a << 2) + b) >> 32 != 0)
S_SCC(lshl3_add_u32, uint32_t, (a << 3) + b, (((uint64_t)a << 3) + b) >> 32 != 0)
S_SCC(lshl4_add_u32, uint32_t, (a << 4) + b, (((uint64_t)a << 4) + b) >> 32 != 0)
S_OP(pack_ll_b32_b16, uint32_t, (a & 0xffff) | b << 16)
S_OP(pack_lh_b32_b16, uint32_t, (a & 0xffff) | (b & 0xffff0000))
S_OP(pack_hh_b32_b16, uint32_t, a >> 16 | (b & 0xffff0000))

void softgpu_run_sop2(struct wave *w, const struct inst *i) {
    uint64_t a = read_scalar(w, &i->src[0]), b = read_scalar(w, &i->src[1]);
    write_scalar(w, &i->dst, i->row->fn.scalar(w, a, b));
}

static const struct row rows[] = {
#define ROW SROW
#include "sop2.def"
#undef ROW
};

const struct rows softgpu_rows_sop2 = FAMILY(rows);
