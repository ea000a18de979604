/* Decodes operands of the vector arithmetic families, with their SDWA, DPP and VOP3 modifiers. */
#include "families.h"

/* Source encodings that announce a further word: an SDWA word, a DPP word or a literal. */
enum { ENC_SDWA = 249, ENC_DPP = 250, ENC_LITERAL = 255 };

/* The selector has three bits, and its value 7 is invalid. */
static bool is_part(unsigned sel) {
    return sel <= SEL_DWORD;
}

static void decode_sdwa(uint32_t x, struct inst *i) {
    enum { UNUSED_KINDS = 3 };
    const struct row *row = i->row;
    bool ok = true;
    i->sdwa = true;
    if (i->encoding == E_VOPC) {
        softgpu_decode_sgpr(&i->dst, x >> 15 & 1 ? x >> 8 & 0x7f : SGPR_VCC, MASK);
    } else {
        i->dst_sel = x >> 8 & 7;
        i->dst_unused = x >> 11 & 3;
        i->clamp = x >> 13 & 1;
        i->omod = x >> 14 & 3;
        ok = is_part(i->dst_sel) && i->dst_unused < UNUSED_KINDS;
    }
    for (unsigned n = 0; n < 2 && row->src[n] && row->src[n] != MASK; n++) {
        uint32_t f = x >> (16 + 8 * n) & 0xff;
        if (n == 0)
            ok &= softgpu_decode_source(&i->src[0], (f & 0x80 ? 0 : 256) + (x & 0xff), row->src[0],
                                        0);
        else if (f & 0x80) /* the VGPR field of src1 contains a scalar register */
            ok &= softgpu_decode_source(&i->src[1], i->src[1].reg, row->src[1], 0);
        i->src[n].sel = f & 7;
        ok &= is_part(i->src[n].sel);
        i->src[n].mods = (f & 8 ? SEXT : 0) | (f & 16 ? NEG : 0) | (f & 32 ? ABS : 0);
    }
    i->run = ok ? i->run : NULL;
}

/* Returns whether DPP permits the control `ctrl`. For a 64-bit operand, DPP permits only the
 * broadcast of one lane to all lanes of a row. */
static bool is_dpp_control(enum target_mask target, unsigned ctrl, unsigned dwords) {
    bool broadcast = ctrl >= 0x150 && ctrl <= 0x15f && target & SINCE90A;
    bool shift = ctrl > 0x100 && ctrl <= 0x12f && ctrl & 15;
    if (dwords > 1 || broadcast)
        return broadcast;
    switch (ctrl) {
    case 0x130: /* wave_shl, wave_rol, wave_shr, wave_ror */
    case 0x134:
    case 0x138:
    case 0x13c:
    case 0x140: /* row_mirror, row_half_mirror, row_bcast:15, row_bcast:31 */
    case 0x141:
    case 0x142:
    case 0x143:
        return true;
    default:
        return ctrl <= 0xff || shift; /* quad_perm, row_shl, row_shr, row_ror */
    }
}

static void decode_dpp(enum target_mask target, uint32_t x, struct inst *i) {
    i->dpp = true;
    softgpu_decode_vgpr(&i->src[0], x & 0xff, i->row->src[0]);
    i->dpp_ctrl = x >> 8 & 0x1ff;
    if (!is_dpp_control(target, i->dpp_ctrl, softgpu_type_dwords(i->row->src[0])))
        i->run = NULL;
    i->bound_ctrl = x >> 19 & 1;
    i->src[0].mods = (x >> 20 & 1 ? NEG : 0) | (x >> 21 & 1 ? ABS : 0);
    if (i->row->src[1] && i->row->src[1] != MASK)
        i->src[1].mods = (x >> 22 & 1 ? NEG : 0) | (x >> 23 & 1 ? ABS : 0);
    i->bank_mask = x >> 24 & 0xf;
    i->row_mask = x >> 28;
}

/* Decodes VOP1, VOP2 and VOPC in their own 32-bit encoding. */
static void decode_e32(enum target_mask target, const uint32_t *words, size_t available,
                       struct inst *i) {
    const struct row *row = i->row;
    uint32_t w = words[0];
    unsigned s0 = w & 0x1ff, vsrc1 = w >> 9 & 0xff, vdst = w >> 17 & 0xff;
    bool extra = row->flags & LITK || (row->src[0] && s0 >= ENC_SDWA && s0 <= ENC_DPP) ||
                 (row->src[0] && s0 == ENC_LITERAL);
    if (extra && available < 2) {
        i->run = NULL;
        return;
    }
    uint32_t x = extra ? words[1] : 0;
    i->size = 1 + extra;

    if (i->encoding == E_VOPC)
        softgpu_decode_sgpr(&i->dst, SGPR_VCC, MASK);
    else if (row->dst == SDST)
        softgpu_decode_sgpr(&i->dst, vdst, B32);
    else if (row->dst)
        softgpu_decode_vgpr(&i->dst, vdst, row->dst);

    if (row->flags & LITK) {
        bool k_first = row->op == 0x17 || row->op == 0x24; /* v_madmk: src0 * K + vsrc1 */
        if (!softgpu_decode_source(&i->src[0], s0, row->src[0], x))
            i->run = NULL;
        softgpu_decode_source(&i->src[k_first ? 1 : 2], ENC_LITERAL, row->dst, x);
        softgpu_decode_vgpr(&i->src[k_first ? 2 : 1], vsrc1, row->dst);
        return;
    }
    if (i->encoding != E_VOP1 && row->src[1])
        softgpu_decode_vgpr(&i->src[1], vsrc1, row->src[1]);
    if (row->src[0]) {
        if (s0 == ENC_SDWA)
            decode_sdwa(x, i);
        else if (s0 == ENC_DPP)
            decode_dpp(target, x, i);
        else if (!softgpu_decode_source(&i->src[0], s0, row->src[0], x))
            i->run = NULL;
        if ((i->sdwa || (i->dpp && softgpu_type_dwords(row->src[0]) < 2)) && row->flags & NOSDWA)
            i->run = NULL;
    }
    if (row->flags & ACC)
        softgpu_decode_vgpr(&i->src[2], vdst, row->src[2]);
    if (row->flags & CARRY_OUT)
        softgpu_decode_sgpr(&i->sdst, SGPR_VCC, MASK);
    if (row->flags & CARRY_IN)
        softgpu_decode_sgpr(&i->src[2], SGPR_VCC, MASK);
}

static void decode_e64(const uint32_t *words, struct inst *i) {
    const struct row *row = i->row;
    uint32_t w = words[0], x = words[1];
    unsigned vdst = w & 0xff, abs = w >> 8 & 7, neg = x >> 29;
    i->clamp = w >> 15 & 1;
    i->omod = x >> 27 & 3;
    if (row->flags &
        CARRY_OUT) { /* in VOP3B, the second destination's field replaces the abs and op_sel bits */
        softgpu_decode_sgpr(&i->sdst, w >> 8 & 0x7f, MASK);
        abs = 0;
    } else {
        i->op_sel = w >> 11 & 0xf;
    }
    if (row->dst == MASK || row->dst == SDST)
        softgpu_decode_sgpr(&i->dst, vdst, row->dst == MASK ? MASK : B32);
    else if (row->dst)
        softgpu_decode_vgpr(&i->dst, vdst, row->dst);
    for (unsigned n = 0; n < 3 && row->src[n]; n++) {
        unsigned enc = x >> 9 * n & 0x1ff;
        if (n == 2 && row->flags & ACC) {
            softgpu_decode_vgpr(&i->src[2], vdst, row->src[2]);
            continue;
        }
        /* gfx9's VOP3 encoding permits no literal. */
        if (enc == ENC_LITERAL || !softgpu_decode_source(&i->src[n], enc, row->src[n], 0))
            i->run = NULL;
        i->src[n].mods = (neg >> n & 1 ? NEG : 0) | (abs >> n & 1 ? ABS : 0);
        if (row->src[n] == MASK && enc >= 128)
            i->run = NULL;
    }
    if (row->flags & CARRY_IN && row->src[2] != MASK) { /* v_div_fmas implicitly reads VCC */
        softgpu_decode_sgpr(&i->sdst, SGPR_VCC, MASK);
    }
}

static void decode_vop3p(const uint32_t *words, struct inst *i) {
    const struct row *row = i->row;
    uint32_t w = words[0], x = words[1];
    softgpu_decode_vgpr(&i->dst, w & 0xff, row->dst);
    i->clamp = w >> 15 & 1;
    i->op_sel = w >> 11 & 7;
    i->op_sel_hi = (x >> 27 & 3) | (w >> 14 & 1) << 2;
    i->neg_lo = x >> 29;
    i->neg_hi = w >> 8 & 7;
    for (unsigned n = 0; n < 3 && row->src[n]; n++) {
        unsigned enc = x >> 9 * n & 0x1ff;
        if (enc == ENC_LITERAL || !softgpu_decode_source(&i->src[n], enc, row->src[n], 0))
            i->run = NULL;
    }
}

static void to_agpr(struct operand *o) {
    if (o->kind == O_VGPR)
        o->reg += AGPR0;
}

static void decode_mai(enum target_mask target, const uint32_t *words, struct inst *i) {
    const struct row *row = i->row;
    uint32_t w = words[0], x = words[1];
    bool matrix = row->src[2];
    softgpu_decode_vgpr(&i->dst, w & 0xff, row->dst);
    for (unsigned n = 0; n < 3 && row->src[n]; n++)
        if (!softgpu_decode_source(&i->src[n], x >> 9 * n & 0x1ff, row->src[n], 0))
            i->run = NULL;
    if (!matrix) { /* v_accvgpr_read, v_accvgpr_write */
        to_agpr(row->dst == row->src[0] && row->op == 0x58 ? &i->src[0] : &i->dst);
        return;
    }
    i->cbsz = w >> 8 & 7;
    i->abid = w >> 11 & 0xf;
    i->blgp = x >> 29;
    if (x >> 27 & 1)
        to_agpr(&i->src[0]);
    if (x >> 28 & 1)
        to_agpr(&i->src[1]);
    bool sparse = row->info & SPARSE_MATRIX;
    if (target & UNTIL908 || w >> 15 & 1) {
        to_agpr(&i->dst);
        if (!sparse) /* in a sparse instruction, the src2 field names the index register */
            to_agpr(&i->src[2]);
    }
    if (sparse && i->blgp)
        i->run = NULL;
    if (i->src[0].kind != O_VGPR || i->src[1].kind != O_VGPR || i->src[2].kind == O_SGPR)
        i->run = NULL;
}

/* Returns true if the instruction has only plain operands and an unmodified result. Such an
 * instruction's handler can ignore modifiers. */
static bool is_plain(const struct inst *i) {
    bool packed = i->encoding == E_VOP3P;
    uint8_t mods = i->src[0].mods | i->src[1].mods | i->src[2].mods;
    return !i->sdwa && !i->dpp && !i->clamp && !i->omod && !mods && !packed &&
           !(i->row->flags & (OPSEL | HALFKEEP));
}

void softgpu_decode_valu(enum target_mask target, const uint32_t *words, size_t available,
                         struct inst *i) {
    const struct row *row = i->row;
    i->run = i->encoding == E_VOPC ? softgpu_run_vopc : softgpu_run_vop;
    if (i->encoding == E_MAI) {
        i->run = row->src[2] ? softgpu_run_mfma : softgpu_run_accvgpr;
        if (row->info & SPARSE_MATRIX)
            i->run = softgpu_run_smfmac;
        decode_mai(target, words, i);
        return;
    }
    if (i->encoding == E_VOP3P)
        decode_vop3p(words, i);
    else if (i->e64 || i->encoding == E_VOP3)
        decode_e64(words, i);
    else
        decode_e32(target, words, available, i);
    if (!i->run)
        return;
    if (i->encoding == E_VOP1 && row->op == 0x52) { /* v_accvgpr_mov_b32 */
        to_agpr(&i->dst);
        to_agpr(&i->src[0]);
    }
    if (i->clamp && row->flags & NOCLAMP) {
        i->run = softgpu_run_unknown;
        return;
    }
    if (row->fn.lanes) {
        if (i->encoding != E_VOPC && !is_plain(i))
            i->run = softgpu_run_vop_full;
        return;
    }
    if (!row->dst)
        i->run = softgpu_run_nop;
    else if (i->encoding == E_VOP1 && row->op == 0x02)
        i->run = softgpu_run_readfirstlane;
    else if (i->encoding == E_VOP1 && row->op == 0x51)
        i->run = softgpu_run_swap;
    else if (i->encoding == E_VOP3 && row->op == 0x289)
        i->run = softgpu_run_readlane;
    else if (i->encoding == E_VOP3 && row->op == 0x28a)
        i->run = softgpu_run_writelane;
    else
        i->run = softgpu_run_unknown;
}
