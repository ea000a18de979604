/* Decodes instruction words: finds the encoding family and the table row, and decodes scalar
 * operands. */
#include "families.h"

#include <pthread.h>

static const struct rows *const families[ENCODINGS] = {
    [E_SOP1] = &softgpu_rows_sop1,     [E_SOP2] = &softgpu_rows_sop2,
    [E_SOPK] = &softgpu_rows_sopk,     [E_SOPC] = &softgpu_rows_sopc,
    [E_SOPP] = &softgpu_rows_sopp,     [E_SMEM] = &softgpu_rows_smem,
    [E_VOP1] = &softgpu_rows_vop1,     [E_VOP2] = &softgpu_rows_vop2,
    [E_VOPC] = &softgpu_rows_vopc,     [E_VOP3] = &softgpu_rows_vop3,
    [E_VOP3P] = &softgpu_rows_vop3p,   [E_MAI] = &softgpu_rows_mai,
    [E_DS] = &softgpu_rows_ds,         [E_FLAT] = &softgpu_rows_flat,
    [E_GLOBAL] = &softgpu_rows_global, [E_SCRATCH] = &softgpu_rows_scratch,
    [E_MUBUF] = &softgpu_rows_mubuf,   [E_MIMG] = &softgpu_rows_mimg,
};

/* Table rows indexed by opcode, so that decoding needs no search. Only VOP3 has more than 256
 * opcodes. */
enum { TARGETS = 4, OPCODES = 1024 };
static const struct row *rows_by_op[TARGETS][ENCODINGS][OPCODES];
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static void build_index(void) {
    for (unsigned e = 0; e < ENCODINGS; e++)
        for (size_t r = 0; r < families[e]->count; r++)
            for (unsigned t = 0; t < TARGETS; t++) {
                const struct row *row = &families[e]->rows[r];
                if (row->targets & 1u << t)
                    rows_by_op[t][e][row->op] = row;
            }
}

const struct row *softgpu_row(enum target_mask target, enum encoding encoding, unsigned op) {
    pthread_once(&indexed, build_index);
    return op < OPCODES ? rows_by_op[__builtin_ctz(target)][encoding][op] : NULL;
}

enum target_mask softgpu_target_mask(const struct softgpu_target *target) {
    if (target->major == 9 && target->minor == 4 && target->stepping == 2)
        return GFX942;
    if (target->major != 9 || target->minor != 0)
        return 0;
    switch (target->stepping) {
    case 6:
        return GFX906;
    case 8:
        return GFX908;
    case 10:
        return GFX90A;
    }
    return 0;
}

/* The matrix instructions are the last opcodes of VOP3P. */
enum { FIRST_MAI = 0x3e };

/* Finds the row and the number of words, before the operands are decoded. */
static bool find_row(enum target_mask target, uint32_t w, struct inst *i) {
    unsigned op, size = 1, encoding;
    if (w >> 31 == 0) {
        if (w >> 25 == 0x3f)
            encoding = E_VOP1, op = w >> 9 & 0xff;
        else if (w >> 25 == 0x3e)
            encoding = E_VOPC, op = w >> 17 & 0xff;
        else
            encoding = E_VOP2, op = w >> 25;
    } else if (w >> 30 == 2) {
        if (w >> 23 == 0x17d)
            encoding = E_SOP1, op = w >> 8 & 0xff;
        else if (w >> 23 == 0x17e)
            encoding = E_SOPC, op = w >> 16 & 0x7f;
        else if (w >> 23 == 0x17f)
            encoding = E_SOPP, op = w >> 16 & 0x7f;
        else if (w >> 28 == 0xb)
            encoding = E_SOPK, op = w >> 23 & 0x1f;
        else
            encoding = E_SOP2, op = w >> 23 & 0x7f;
    } else {
        size = 2;
        switch (w >> 26) {
        case 0x30:
            encoding = E_SMEM, op = w >> 18 & 0xff;
            break;
        case 0x34:
            if (w >> 23 == 0x1a7) {
                op = w >> 16 & 0x7f;
                encoding = op < FIRST_MAI ? E_VOP3P : E_MAI;
                break;
            }
            op = w >> 16 & 0x3ff;
            i->e64 = op < 0x1c0;
            if (op < 0x100)
                encoding = E_VOPC;
            else if (op < 0x140)
                encoding = E_VOP2, op -= 0x100;
            else if (op < 0x1c0)
                encoding = E_VOP1, op -= 0x140;
            else
                encoding = E_VOP3;
            break;
        case 0x36:
            encoding = E_DS, op = w >> 17 & 0xff;
            break;
        case 0x37:
            switch (w >> 14 & 3) {
            case 0:
                encoding = E_FLAT;
                break;
            case 1:
                encoding = E_SCRATCH;
                break;
            case 2:
                encoding = E_GLOBAL;
                break;
            default:
                return false;
            }
            op = w >> 18 & 0x7f;
            break;
        case 0x38:
            encoding = E_MUBUF, op = w >> 18 & 0x7f;
            break;
        case 0x3c:
            encoding = E_MIMG, op = w >> 18 & 0x7f;
            break;
        default:
            return false;
        }
    }
    i->encoding = encoding;
    i->size = size;
    i->row = softgpu_row(target, encoding, op);
    return i->row && !(i->e64 && i->row->flags & NOE64);
}

static bool decode_scalar(const uint32_t *words, size_t available, struct inst *i) {
    const struct row *row = i->row;
    uint32_t w = words[0], literal = 0;
    unsigned s0 = w & 0xff, s1 = w >> 8 & 0xff, dst = w >> 16 & 0x7f;
    bool ok = true;
    switch (i->encoding) {
    case E_SOP1:
        s1 = 0;
        break;
    case E_SOPK:
        i->imm = (int16_t)w;
        softgpu_decode_sgpr(&i->dst, dst, row->dst ? row->dst : row->src[0]);
        i->run = softgpu_run_sopk;
        if (row->src[1] == B32) { /* s_setreg_imm32_b32 */
            if (available < 2)
                return false;
            i->size = 2;
            softgpu_decode_source(&i->src[1], 255, B32, words[1]);
        }
        return true;
    case E_SOPP:
        i->imm = (int16_t)w;
        i->run = row->fn.step;
        return true;
    }
    if ((row->src[0] && s0 == 255) || (row->src[1] && s1 == 255)) {
        if (available < 2)
            return false;
        literal = words[1];
        i->size = 2;
    }
    if (row->src[0])
        ok &=
            s0 < 249 || s0 > 250 ? softgpu_decode_source(&i->src[0], s0, row->src[0], literal) : 0;
    if (row->src[1])
        ok &= softgpu_decode_source(&i->src[1], s1, row->src[1], literal);
    if (row->dst)
        softgpu_decode_sgpr(&i->dst, dst, row->dst);
    i->run = i->encoding == E_SOP1   ? softgpu_run_sop1
             : i->encoding == E_SOP2 ? softgpu_run_sop2
                                     : softgpu_run_sopc;
    if (!row->fn.scalar)
        i->run = softgpu_run_unknown;
    return ok;
}

/* Returns whether LLVM decodes an unknown instruction as two words. For gfx942, LLVM does not know
 * the encoding of image instructions. */
static bool is_long(enum target_mask target, uint32_t w) {
    enum { IMAGES = 0x3c, NOTHING = 0x35 };
    return w >> 30 == 3 && w >> 26 != NOTHING && !(target == GFX942 && w >> 26 == IMAGES);
}

bool softgpu_decode(enum target_mask target, const uint32_t *words, size_t available,
                    struct inst *i) {
    *i = (struct inst){.size = 1, .words[0] = available ? words[0] : 0};
    bool ok = available > 0 && find_row(target, words[0], i) && i->size <= available;
    if (ok)
        switch (i->encoding) {
        case E_SOP1:
        case E_SOP2:
        case E_SOPK:
        case E_SOPC:
        case E_SOPP:
            ok = decode_scalar(words, available, i);
            break;
        case E_VOP1:
        case E_VOP2:
        case E_VOPC:
        case E_VOP3:
        case E_VOP3P:
        case E_MAI:
            softgpu_decode_valu(target, words, available, i);
            ok = i->run != NULL;
            break;
        default:
            softgpu_decode_memory(target, words, i);
            ok = i->run != NULL;
        }
    if (!ok) {
        i->row = NULL;
        i->size = available > 1 && is_long(target, words[0]) ? 2 : 1;
        i->run = softgpu_run_unknown;
    }
    for (unsigned n = 0; n < i->size && n < available; n++)
        i->words[n] = words[n];
    return ok;
}
