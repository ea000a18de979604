/* Prints the operands of memory instructions. */
#include "memory.h"
#include "mimg.h"
#include "print.h"
#include "smem.h"

static void put_list(struct text *t, const struct operand *const *all, unsigned count) {
    const char *separator = " ";
    for (unsigned n = 0; n < count; n++)
        if (all[n]->kind) {
            softgpu_put(t, "%s", separator);
            softgpu_put_operand(t, all[n]);
            separator = ", ";
        }
}

static void put_cache_bits(struct text *t, const struct inst *i) {
    bool scopes = t->target == GFX942;
    if (i->glc)
        softgpu_put(t, scopes ? " sc0" : " glc");
    if (i->slc)
        softgpu_put(t, scopes ? " nt" : " slc");
    if (i->scc)
        softgpu_put(t, scopes ? " sc1" : " scc");
}

static void print_smem(struct text *t, const struct inst *i) {
    struct operand probe = i->dst;
    if (i->row->info == SM_PROBE) {
        softgpu_put(t, i->dst.reg <= 64 ? " %u, " : " 0x%x, ", i->dst.reg);
        softgpu_put_operand(t, &i->src[0]);
    } else {
        const struct operand *const all[] = {&probe, &i->src[0]};
        put_list(t, all, 2);
    }
    if (!i->src[0].kind)
        return;
    if (i->src[2].kind) {
        softgpu_put(t, ", ");
        softgpu_put_operand(t, &i->src[2]);
        if (i->imm_en)
            softgpu_put(t, " offset:");
    } else {
        softgpu_put(t, ", ");
    }
    if (i->imm_en)
        softgpu_put(t, i->imm < 0 ? "-0x%x" : "0x%x", i->imm < 0 ? -i->imm : i->imm);
    softgpu_put(t, "%s", i->glc ? " glc" : "");
}

static bool power_of_two(unsigned x) {
    return x && !(x & (x - 1));
}

static void put_swizzle(struct text *t, unsigned pattern) {
    unsigned and = pattern & 31, or = pattern >> 5 & 31, xor = pattern >> 10 & 31;
    if (pattern >= 0xe000) {
        softgpu_put(t, "swizzle(FFT,%u)", pattern & 31);
    } else if (pattern >= 0xc000) {
        softgpu_put(t, "swizzle(ROTATE,%u,%u)", pattern >> 10 & 1, pattern >> 5 & 31);
    } else if (pattern & 0x8000 && pattern & 0x7f00) {
        softgpu_put(t, "%u", pattern);
    } else if (pattern & 0x8000) {
        softgpu_put(t, "swizzle(QUAD_PERM,%u,%u,%u,%u)", pattern & 3, pattern >> 2 & 3,
                    pattern >> 4 & 3, pattern >> 6 & 3);
    } else if (and == 31 && or == 0 && power_of_two(xor)) {
        softgpu_put(t, "swizzle(SWAP,%u)", xor);
    } else if (and == 31 && or == 0 && xor && power_of_two(xor + 1)) {
        softgpu_put(t, "swizzle(REVERSE,%u)", xor + 1);
    } else if (xor == 0 && power_of_two(32 - and) && or < 32 - and && and != 31) {
        softgpu_put(t, "swizzle(BROADCAST,%u,%u)", 32 - and, or);
    } else {
        softgpu_put(t, "swizzle(BITMASK_PERM,\"");
        for (int n = 4; n >= 0; n--) {
            unsigned p0 = (or >> n & 1) ^ (xor >> n & 1);
            unsigned p1 = ((and >> n & 1) | (or >> n & 1)) ^ (xor >> n & 1);
            softgpu_put(t, "%c", p0 == p1 ? '0' + (char)p0 : p0 ? 'i' : 'p');
        }
        softgpu_put(t, "\")");
    }
}

static void print_ds(struct text *t, const struct inst *i) {
    const struct operand *const all[] = {&i->dst, &i->src[0], &i->src[1], &i->src[2]};
    enum move move = move_of(i->row);
    put_list(t, all, 4);
    if (move == DS_SWIZZLE) {
        if (i->imm) {
            softgpu_put(t, " offset:");
            put_swizzle(t, (unsigned)i->imm & 0xffff);
        }
    } else if (move >= DS_READ2_32 && move <= DS_WRXCHG2ST64_64) {
        if (i->imm & 0xff)
            softgpu_put(t, " offset0:%d", i->imm & 0xff);
        if (i->imm >> 8)
            softgpu_put(t, " offset1:%d", i->imm >> 8);
    } else if (i->imm) {
        softgpu_put(t, " offset:%d", i->imm);
    }
    softgpu_put(t, "%s", i->gds ? " gds" : "");
}

static void print_flat(struct text *t, const struct inst *i) {
    const char *separator = " ";
    if (i->dst.kind) {
        softgpu_put(t, " ");
        softgpu_put_operand(t, &i->dst);
        separator = ", ";
    }
    softgpu_put(t, "%s", separator);
    if (i->src[0].kind)
        softgpu_put_operand(t, &i->src[0]);
    else
        softgpu_put(t, "off");
    if (i->src[1].kind) {
        softgpu_put(t, ", ");
        softgpu_put_operand(t, &i->src[1]);
    }
    if (i->encoding != E_FLAT) {
        softgpu_put(t, ", ");
        if (i->src[2].kind)
            softgpu_put_operand(t, &i->src[2]);
        else
            softgpu_put(t, "off");
    }
    if (i->imm)
        softgpu_put(t, " offset:%d", i->imm);
    put_cache_bits(t, i);
    softgpu_put(t, "%s", i->lds ? " lds" : "");
}

static void print_mubuf(struct text *t, const struct inst *i) {
    if (move_of(i->row) == MV_CACHE) {
        if (t->target == GFX942)
            softgpu_put(t, "%s%s", i->glc ? " sc0" : "", i->scc ? " sc1" : "");
        return;
    }
    const struct operand *data = i->src[1].kind ? &i->src[1] : &i->dst;
    if (!i->lds) {
        softgpu_put(t, " ");
        softgpu_put_operand(t, data);
        softgpu_put(t, ",");
    }
    softgpu_put(t, " ");
    if (i->src[0].kind)
        softgpu_put_operand(t, &i->src[0]);
    else
        softgpu_put(t, "off");
    softgpu_put(t, ", ");
    softgpu_put_operand(t, &i->src[2]);
    softgpu_put(t, ", ");
    softgpu_put_operand(t, &i->sdst);
    softgpu_put(t, "%s%s", i->idxen ? " idxen" : "", i->offen ? " offen" : "");
    if (i->imm)
        softgpu_put(t, " offset:%d", i->imm);
    put_cache_bits(t, i);
    softgpu_put(t, "%s", i->lds ? " lds" : "");
}

void softgpu_print_memory(struct text *t, const struct inst *i) {
    if (i->encoding == E_SMEM)
        print_smem(t, i);
    else if (i->encoding == E_DS)
        print_ds(t, i);
    else if (i->encoding == E_MUBUF)
        print_mubuf(t, i);
    else
        print_flat(t, i);
}

void softgpu_print_mimg(struct text *t, const struct inst *i) {
    static const struct {
        uint32_t bit;
        const char *name;
    } flags[] = {{MIMG_UNORM, " unorm"}, {MIMG_GLC, " glc"}, {MIMG_SLC, " slc"}, {MIMG_A16, " a16"},
                 {MIMG_TFE, " tfe"},     {MIMG_LWE, " lwe"}, {MIMG_DA, " da"}};
    const struct operand *const all[] = {&i->dst, &i->src[0], &i->src[1], &i->src[2]};
    uint32_t bits = (uint32_t)i->imm;
    for (unsigned n = 0; n < 4 && all[n]->kind; n++) {
        softgpu_put(t, n ? ", " : " ");
        softgpu_put_operand(t, all[n]);
    }
    if (bits >> 8 & 15)
        softgpu_put(t, " dmask:0x%x", bits >> 8 & 15);
    for (unsigned n = 0; n < sizeof flags / sizeof flags[0]; n++)
        if (bits & flags[n].bit)
            softgpu_put(t, "%s", flags[n].name);
    softgpu_put(t, i->words[1] & MIMG_D16 ? " d16" : "");
}
