/* MUBUF: memory behind a descriptor of four SGPRs. Scratch is one that is swizzled; others are
 * arrays with a bound, beyond which loads give 0 and stores do nothing. */
#include "lanes.h"
#include "memory.h"
#include "operand.h"

struct buffer {
    uint64_t base;
    uint32_t stride, records;
    bool swizzled;
};

static struct buffer descriptor(const struct wave *w, unsigned reg) {
    const uint32_t *s = &w->s[reg];
    return (struct buffer){.base = s[0] | (uint64_t)(s[1] & 0xffff) << 32,
                           .stride = s[1] >> 16 & 0x3fff,
                           .records = s[2],
                           .swizzled = s[1] >> 31};
}

static void run_scratch(struct wave *w, const struct inst *i, const struct buffer *b,
                        uint32_t soffset) {
    uint32_t offset[LANES];
    const uint32_t *lanes = w->v[i->src[0].reg];
    EACH_LANE(l) offset[l] = (i->offen ? lanes[l] : 0) + (uint32_t)i->imm;
    softgpu_transfer_scratch(w, i, b->base - SCRATCH_VA + soffset, offset, wave_exec(w));
}

/* Loads of lanes that are out of bounds. */
static void load_zeros(struct wave *w, const struct inst *i, uint64_t mask) {
    unsigned rows = i->dst.kind ? softgpu_type_dwords(i->row->dst) : 0;
    for (unsigned r = 0; r < rows; r++)
        for (uint64_t m = mask; m; m &= m - 1)
            w->v[i->dst.reg + r][__builtin_ctzll(m)] = 0;
}

void softgpu_run_mubuf(struct wave *w, const struct inst *i) {
    struct buffer b = descriptor(w, i->src[2].reg);
    uint32_t soffset = (uint32_t)read_scalar(w, &i->sdst);
    if (b.swizzled) {
        if (b.base - SCRATCH_VA < 1ull << 40 && !i->idxen && b.stride == 0)
            run_scratch(w, i, &b, soffset);
        else
            softgpu_wave_fault(w, i, -1, "swizzled buffers other than scratch are not emulated");
        return;
    }
    uint64_t va[LANES], mask = wave_exec(w), inside = 0;
    const uint32_t *first = w->v[i->src[0].reg], *second = w->v[i->src[0].reg + i->idxen];
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        uint64_t index = i->idxen ? first[l] : 0;
        uint64_t offset = (uint64_t)(i->offen ? second[l] : 0) + (uint32_t)i->imm;
        va[l] = b.base + soffset + index * b.stride + offset;
        bool in = b.stride ? index < b.records && offset + bytes <= b.stride
                           : offset + bytes <= b.records;
        inside |= (uint64_t)in << l;
    }
    struct access a;
    if (!softgpu_locate_global(w, i, va, inside, &a))
        return;
    softgpu_transfer(w, i, &a);
    load_zeros(w, i, mask & ~inside);
}

#define ROW(op_, name_, targets_, dst_, data_, move_)                                              \
    {.op = op_,                                                                                    \
     .name = name_,                                                                                \
     .targets = targets_,                                                                          \
     .dst = dst_,                                                                                  \
     .src = {B64, data_},                                                                          \
     .info = move_},

static const struct row rows[] = {
#include "mubuf.def"
};

const struct rows softgpu_rows_mubuf = FAMILY(rows);
