/* Decodes the operands of the memory families: address, data and offset. */
#include "../check/hooks.h"
#include "memory.h"
#include "mimg.h"
#include "smem.h"

static void decode_smem(const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    bool buffer = row->info == SM_BUFFER_LOAD || row->info == SM_BUFFER_STORE ||
                  row->info == SM_BUFFER_ATOMIC ||
                  (row->info == SM_PROBE && row->op == 0x27); /* s_atc_probe_buffer */
    i->run = softgpu_run_smem;
    i->glc = w >> 16 & 1;
    i->imm_en = w >> 17 & 1;
    i->soffset_en = w >> 14 & 1;
    i->imm = (int32_t)(x << 11) >> 11;
    if (row->dst)
        softgpu_decode_sgpr(&i->dst, w >> 6 & 0x7f, row->dst);
    if (row->info == SM_CACHE || row->info == SM_MEMTIME || row->info == SM_MEMREALTIME)
        return;
    softgpu_decode_sgpr(&i->src[0], (w & 0x3f) * 2, buffer ? B128 : B64);
    if (i->soffset_en)
        softgpu_decode_sgpr(&i->src[2], x >> 25, B32);
    else if (!i->imm_en)
        softgpu_decode_sgpr(&i->src[2], x & 0x7f, B32);
}

static void decode_ds(enum target_mask target, const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    unsigned acc = target & SINCE90A && w >> 25 & 1 ? AGPR0 : 0;
    i->run = softgpu_run_ds;
    i->imm = w & 0xffff;
    i->gds = w >> 16 & 1;
    if (move_of(row) != DS_NOP && move_of(row) != DS_NO_ADDRESS)
        softgpu_decode_vgpr(&i->src[0], x & 0xff, B32);
    if (row->src[1])
        softgpu_decode_vgpr(&i->src[1], (x >> 8 & 0xff) + acc, row->src[1]);
    if (row->src[2])
        softgpu_decode_vgpr(&i->src[2], (x >> 16 & 0xff) + acc, row->src[2]);
    if (row->dst)
        softgpu_decode_vgpr(&i->dst, (x >> 24) + acc, row->dst);
}

/* Returns true for gfx908's float atomic additions, which cannot return the old value. */
static bool lacks_return(enum target_mask target, const struct inst *i) {
    enum atomic_op op = atomic_of(i->row);
    return target == GFX908 && i->glc && (op == ADD_F || op == ADD_PK_F16);
}

static void decode_flat(enum target_mask target, const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    unsigned acc = target & SINCE90A && x >> 23 & 1 ? AGPR0 : 0, saddr = x >> 16 & 0x7f;
    enum { NO_SADDR = 0x7f };
    i->glc = w >> 16 & 1;
    i->slc = w >> 17 & 1;
    i->scc = w >> 25 & 1;
    i->lds = w >> 13 & 1;
    /* On gfx942, loads to workgroup memory have their own opcodes. In gfx942's scratch
     * instructions, the LDS bit means that a vector register is added to the address, possibly
     * together with a scalar register. */
    bool indexed = i->encoding == E_SCRATCH;
    if (target == GFX942) {
        indexed = i->lds;
        i->lds = false;
    }
    i->imm = i->encoding == E_FLAT ? (int32_t)(w & 0xfff) : (int32_t)(w << 19) >> 19;
    i->run = i->encoding == E_SCRATCH ? softgpu_run_scratch : softgpu_run_flat;
    /* FLAT instructions have no SADDR operand, so this function ignores the SADDR field; AMD's own
     * kernels set the field to 0. */
    bool scalar = i->encoding != E_FLAT && saddr != NO_SADDR;
    enum type wide = i->encoding == E_SCRATCH || scalar ? B32 : B64;
    if (scalar)
        softgpu_decode_sgpr(&i->src[2], saddr, i->encoding == E_SCRATCH ? B32 : B64);
    if (i->encoding != E_SCRATCH || (target == GFX942 ? indexed : !scalar))
        softgpu_decode_vgpr(&i->src[0], x & 0xff, wide);
    if (row->src[1])
        softgpu_decode_vgpr(&i->src[1], (x >> 8 & 0xff) + acc, row->src[1]);
    bool atomic = move_of(row) == MV_ATOMIC_32 || move_of(row) == MV_ATOMIC_64;
    if (row->dst && (!atomic || i->glc))
        softgpu_decode_vgpr(&i->dst, (x >> 24) + acc, row->dst);
    if (move_of(row) >= MV_LDS_U8 && move_of(row) <= MV_LDS_32)
        i->run = softgpu_run_load_lds;
    if (i->lds || move_of(row) == MV_FORMAT)
        i->run = softgpu_run_unknown;
    if (target == GFX942 && indexed && i->encoding != E_SCRATCH)
        i->run = NULL;
    if (lacks_return(target, i))
        i->run = NULL;
}

static void decode_mubuf(enum target_mask target, const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    unsigned acc = target & SINCE90A && x >> 23 & 1 ? AGPR0 : 0;
    enum move move = move_of(row);
    i->glc = w >> 14 & 1;
    i->slc = w >> 17 & 1;
    i->scc = w >> 15 & 1;
    i->lds = w >> 16 & 1;
    i->idxen = w >> 13 & 1;
    i->offen = w >> 12 & 1;
    i->imm = w & 0xfff;
    if (move == MV_CACHE) {
        i->run = CHECKED_CACHE(softgpu_run_nop);
        return;
    }
    i->run = softgpu_run_mubuf;
    if (i->idxen || i->offen)
        softgpu_decode_vgpr(&i->src[0], x & 0xff, i->idxen && i->offen ? B64 : B32);
    softgpu_decode_sgpr(&i->src[2], (x >> 16 & 0x1f) * 4, B128);
    if (!softgpu_decode_source(&i->sdst, x >> 24, B32, 0) || x >> 24 == 255 ||
        lacks_return(target, i))
        i->run = NULL;
    bool atomic = move == MV_ATOMIC_32 || move == MV_ATOMIC_64;
    if (row->src[1])
        softgpu_decode_vgpr(&i->src[1], (x >> 8 & 0xff) + acc, row->src[1]);
    if (row->dst && (!atomic || i->glc)) {
        softgpu_decode_vgpr(&i->dst, (x >> 8 & 0xff) + acc, row->dst);
    }
    if (i->run && (i->lds || move == MV_FORMAT))
        i->run = softgpu_run_unknown;
}

/* Returns the type whose registers hold the image components in the mask; two 16-bit components
 * share a register. */
static enum type image_type(const struct inst *i, uint32_t w, uint32_t x, bool tfe) {
    static const enum type types[] = {B32, B32, B64, B96, B128, B160};
    unsigned components =
        move_of(i->row) == MV_IMAGE_GATHER ? 4 : (unsigned)__builtin_popcount(w >> 8 & 15);
    unsigned dwords = x & MIMG_D16 ? (components + 1) / 2 : components;
    return types[(dwords ? dwords : 1) + tfe];
}

static void decode_mimg(enum target_mask target, const uint32_t *words, struct inst *i) {
    uint32_t w = words[0], x = words[1];
    const struct row *row = i->row;
    bool acc = target == GFX90A && w & MIMG_TFE, tfe = target != GFX90A && w & MIMG_TFE;
    enum type data = image_type(i, w, x, tfe);
    i->run = softgpu_run_unknown;
    i->imm = (int32_t)(target == GFX90A ? w & ~(uint32_t)MIMG_TFE : w);
    softgpu_decode_vgpr(&i->dst, (x >> 8 & 0xff) + (acc ? AGPR0 : 0), data);
    softgpu_decode_vgpr(&i->src[0], x & 0xff, row->src[0]);
    softgpu_decode_sgpr(&i->src[1], (x >> 16 & 0x1f) * 4, B256);
    if (row->src[2])
        softgpu_decode_sgpr(&i->src[2], (x >> 21 & 0x1f) * 4, B128);
}

void softgpu_decode_memory(enum target_mask target, const uint32_t *words, struct inst *i) {
    switch (i->encoding) {
    case E_SMEM:
        decode_smem(words, i);
        break;
    case E_DS:
        decode_ds(target, words, i);
        break;
    case E_MUBUF:
        decode_mubuf(target, words, i);
        break;
    case E_MIMG:
        decode_mimg(target, words, i);
        break;
    default:
        decode_flat(target, words, i);
    }
}
