/* MIMG: images, decoded and printed, not emulated. */
#include "families.h"
#include "memory.h"
#include "print.h"

enum {
    UNORM = 1 << 12,
    GLC = 1 << 13,
    DA = 1 << 14,
    A16 = 1 << 15,
    TFE = 1 << 16, /* on gfx90a: the data are accumulation registers */
    LWE = 1 << 17,
    SLC = 1 << 25,
};
static const uint32_t D16 = 1u << 31; /* of the second word */

/* Registers for the components that the mask asks for, two to a register where they are 16 bits. */
static enum type data_type(const struct inst *i, uint32_t w, uint32_t x, bool tfe) {
    static const enum type types[] = {B32, B32, B64, B96, B128, B160};
    unsigned components =
        move_of(i->row) == MV_IMAGE_GATHER ? 4 : (unsigned)__builtin_popcount(w >> 8 & 15);
    unsigned dwords = x & D16 ? (components + 1) / 2 : components;
    return types[(dwords ? dwords : 1) + tfe];
}

void softgpu_decode_mimg(enum target_mask target, const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    bool acc = target == GFX90A && w & TFE, tfe = target != GFX90A && w & TFE;
    enum type data = data_type(i, w, x, tfe);
    i->run = softgpu_run_unknown;
    i->imm = (int32_t)(target == GFX90A ? w & ~(uint32_t)TFE : w);
    softgpu_decode_vgpr(&i->dst, (x >> 8 & 0xff) + (acc ? AGPR0 : 0), data);
    softgpu_decode_vgpr(&i->src[0], x & 0xff, row->src[0]);
    softgpu_decode_sgpr(&i->src[1], (x >> 16 & 0x1f) * 4, B256);
    if (row->src[2])
        softgpu_decode_sgpr(&i->src[2], (x >> 21 & 0x1f) * 4, B128);
}

void softgpu_print_mimg(struct text *t, const struct inst *i) {
    static const struct {
        uint32_t bit;
        const char *name;
    } flags[] = {{UNORM, " unorm"}, {GLC, " glc"}, {SLC, " slc"}, {A16, " a16"},
                 {TFE, " tfe"},     {LWE, " lwe"}, {DA, " da"}};
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
    softgpu_put(t, i->words[1] & D16 ? " d16" : "");
}

#define ROW(op_, name_, targets_, address_, move_)                                                 \
    {.op = op_,                                                                                    \
     .name = name_,                                                                                \
     .targets = targets_,                                                                          \
     .src = {address_, B256, move_ >= MV_IMAGE_SAMPLE ? B128 : NONE},                              \
     .info = move_},

static const struct row rows[] = {
#include "mimg.def"
};

const struct rows softgpu_rows_mimg = FAMILY(rows);
