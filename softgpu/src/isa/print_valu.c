/* Prints vector operands and their modifiers. */
#include "print.h"

static void put_source(struct text *t, const struct operand *o) {
    bool constant = o->kind != O_VGPR && o->kind != O_SGPR;
    if (o->mods & SEXT)
        softgpu_put(t, "sext(");
    if (o->mods & NEG)
        softgpu_put(t, constant && !(o->mods & ABS) ? "neg(" : "-");
    if (o->mods & ABS)
        softgpu_put(t, "|");
    softgpu_put_operand(t, o);
    if (o->mods & ABS)
        softgpu_put(t, "|");
    if (o->mods & NEG && constant && !(o->mods & ABS))
        softgpu_put(t, ")");
    if (o->mods & SEXT)
        softgpu_put(t, ")");
}

static void put_bits(struct text *t, const char *name, unsigned bits, unsigned count) {
    softgpu_put(t, " %s:[", name);
    for (unsigned n = 0; n < count; n++)
        softgpu_put(t, "%s%u", n ? "," : "", bits >> n & 1);
    softgpu_put(t, "]");
}

static void put_dpp(struct text *t, const struct inst *i) {
    static const struct {
        unsigned first, last;
        const char *name;
        unsigned base;
    } controls[] = {
        {0x101, 0x10f, "row_shl", 0x100},        {0x111, 0x11f, "row_shr", 0x110},
        {0x121, 0x12f, "row_ror", 0x120},        {0x130, 0x130, "wave_shl", 0x12f},
        {0x134, 0x134, "wave_rol", 0x133},       {0x138, 0x138, "wave_shr", 0x137},
        {0x13c, 0x13c, "wave_ror", 0x13b},       {0x142, 0x142, "row_bcast", 0x142 - 15},
        {0x143, 0x143, "row_bcast", 0x143 - 31}, {0x150, 0x15f, "row_newbcast", 0x150},
    };
    unsigned c = i->dpp_ctrl;
    if (c <= 0xff)
        softgpu_put(t, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6 & 3);
    else if (c == 0x140 || c == 0x141)
        softgpu_put(t, c == 0x140 ? " row_mirror" : " row_half_mirror");
    for (unsigned n = 0; n < sizeof controls / sizeof controls[0]; n++)
        if (c >= controls[n].first && c <= controls[n].last)
            softgpu_put(t, " %s:%u", controls[n].name, c - controls[n].base);
    softgpu_put(t, " row_mask:0x%x bank_mask:0x%x%s", i->row_mask, i->bank_mask,
                i->bound_ctrl ? " bound_ctrl:1" : "");
}

/* Returns true for v_cvt_f32_fp8 and its variants, which select only a part of their source. */
static bool reads_float8(const struct inst *i) {
    return i->encoding == E_VOP1 && i->row->op >= 0x54 && i->row->op <= 0x57;
}

/* Prints the part of the destination that v_cvt_pk_fp8_f32 and its variants select. */
static void put_float8_part(struct text *t, const struct inst *i) {
    bool packed = i->row->op <= 0x2a3;
    if (packed && i->op_sel)
        put_bits(t, "op_sel", (i->op_sel & 3) | (i->op_sel >> 3 & 1) << 2, 3);
    else if (i->op_sel)
        put_bits(t, "op_sel", i->op_sel, 4);
}

static void put_sdwa(struct text *t, const struct inst *i) {
    static const char *const parts[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                        "WORD_0", "WORD_1", "DWORD",  "?"};
    static const char *const unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?"};
    if (i->encoding != E_VOPC && !reads_float8(i))
        softgpu_put(t, " dst_sel:%s dst_unused:%s", parts[i->dst_sel], unused[i->dst_unused]);
    for (unsigned n = 0; n < 2; n++)
        if (i->src[n].kind && i->row->src[n] != MASK)
            softgpu_put(t, " src%u_sel:%s", n, parts[i->src[n].sel]);
}

static void put_output(struct text *t, const struct inst *i) {
    static const char *const factors[] = {"", " mul:2", " mul:4", " div:2"};
    softgpu_put(t, "%s%s", i->clamp ? " clamp" : "", factors[i->omod]);
}

static void put_packed(struct text *t, const struct inst *i, unsigned sources) {
    bool mix = i->row->flags & MIX;
    unsigned all = (1u << sources) - 1, high = i->op_sel_hi & all;
    if (i->op_sel & all)
        put_bits(t, "op_sel", i->op_sel, sources);
    if (mix ? high : high != all)
        put_bits(t, "op_sel_hi", high, sources);
    if (i->neg_lo & all && !mix)
        put_bits(t, "neg_lo", i->neg_lo, sources);
    if (i->neg_hi & all && !mix)
        put_bits(t, "neg_hi", i->neg_hi, sources);
    softgpu_put(t, "%s", i->clamp ? " clamp" : "");
}

static void put_matrix(struct text *t, const struct inst *i) {
    if (i->cbsz)
        softgpu_put(t, " cbsz:%u", i->cbsz);
    if (i->abid)
        softgpu_put(t, " abid:%u", i->abid);
    if (i->blgp && t->target == GFX942 && i->row->src[0] == B64 && strstr(i->row->name, "f64"))
        put_bits(t, "neg", i->blgp, 3);
    else if (i->blgp)
        softgpu_put(t, " blgp:%u", i->blgp);
}

void softgpu_print_valu(struct text *t, const struct inst *i) {
    const struct row *row = i->row;
    const char *separator = " ";
    unsigned sources = 0;
    if (i->dst.kind) {
        softgpu_put(t, " ");
        softgpu_put_operand(t, &i->dst);
        separator = ", ";
    }
    if (row->flags & CARRY_OUT) {
        softgpu_put(t, ", ");
        softgpu_put_operand(t, &i->sdst);
    }
    for (unsigned n = 0; n < 3 && row->src[n]; n++) {
        if (n == 2 && row->flags & ACC)
            break;
        struct operand o = i->src[n];
        if (row->flags & MIX)
            o.mods = (i->neg_lo >> n & 1 ? NEG : 0) | (i->neg_hi >> n & 1 ? ABS : 0);
        softgpu_put(t, "%s", separator);
        if (row->flags & LITK && o.kind == O_LITERAL)
            softgpu_put(t, "0x%x", (uint32_t)o.bits);
        else
            put_source(t, &o);
        separator = ", ";
        sources++;
    }
    if (i->encoding == E_MAI) {
        put_matrix(t, i);
        return;
    }
    if (i->encoding == E_VOP3P) {
        put_packed(t, i, sources);
        return;
    }
    if (row->flags & OPSEL && i->op_sel) {
        unsigned bits = (i->op_sel & ((1u << sources) - 1)) | (i->op_sel >> 3 & 1) << sources;
        put_bits(t, "op_sel", bits, sources + 1);
    }
    if (i->encoding == E_VOP3 && row->op >= 0x2a2 && row->op <= 0x2a5)
        put_float8_part(t, i);
    put_output(t, i);
    if (i->dpp)
        put_dpp(t, i);
    if (i->sdwa)
        put_sdwa(t, i);
}
