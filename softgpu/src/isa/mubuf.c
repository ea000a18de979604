/* Implements MUBUF: accesses to buffers, each described by a descriptor in four SGPRs. A scratch
 * buffer is swizzled. Every other buffer has a bound: loads of dwords beyond the bound return 0,
 * and stores beyond the bound have no effect. */
#include "../check/hooks.h"
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

/* The address of a lane's bytes. `have` is the number of bytes within the buffer's bound. Loads and
 * stores access each dword that lies within the bound. An atomic accesses all of its bytes or no
 * byte. */
struct place {
    uint64_t va;
    unsigned have;
};

static struct place place_of(const struct wave *w, const struct inst *i, const struct buffer *b,
                             uint32_t soffset, int lane) {
    unsigned reg = i->src[0].reg, bytes = softgpu_move_bytes(move_of(i->row));
    uint64_t index = i->idxen ? w->v[reg][lane] : 0;
    uint64_t offset = (uint64_t)(i->offen ? w->v[reg + i->idxen][lane] : 0) + (uint32_t)i->imm;
    /* If the bound is in bytes, the scalar offset is part of the offset that the bound limits. */
    uint64_t limit = b->stride              ? index < b->records ? b->stride : 0
                     : b->records > soffset ? b->records - soffset
                                            : 0;
    uint64_t left = offset < limit ? limit - offset : 0;
    bool atomic = move_of(i->row) == MV_ATOMIC_32 || move_of(i->row) == MV_ATOMIC_64;
    unsigned some = atomic || left >= bytes ? 0 : (unsigned)left / 4 * 4;
    return (struct place){.va = b->base + soffset + index * b->stride + offset,
                          .have = left >= bytes ? bytes : some};
}

/* Loads the lanes whose bytes lie partly or wholly beyond the bound. A temporary copy contains 0
 * for each byte beyond the bound. */
static void load_cut(struct wave *w, const struct inst *i, const struct place *places,
                     uint64_t lanes) {
    char copies[LANES][16] = {0};
    struct access a = {.mask = lanes, .stride = 4};
    for (uint64_t m = lanes; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        bool some = places[l].have && CHECKED_ACCESS(w, i, l, places[l].va, places[l].have);
        char *host = some ? softgpu_host_address(w, places[l].va, places[l].have) : NULL;
        if (some && !host) {
            softgpu_memory_fault(w, i, l, "access outside mapped memory", places[l].va,
                                 places[l].have);
            return;
        }
        if (host)
            memcpy(copies[l], host, places[l].have);
        a.at[l] = copies[l];
    }
    softgpu_transfer(w, i, &a);
}

static void store_cut(struct wave *w, const struct inst *i, const struct place *places,
                      uint64_t lanes) {
    for (uint64_t m = lanes; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        if (!places[l].have || !CHECKED_ACCESS(w, i, l, places[l].va, places[l].have))
            continue;
        char *host = softgpu_host_address(w, places[l].va, places[l].have);
        if (!host) {
            softgpu_memory_fault(w, i, l, "access outside mapped memory", places[l].va,
                                 places[l].have);
            return;
        }
        for (unsigned n = 0; n < places[l].have / 4; n++)
            memcpy(host + 4 * n, &w->v[i->src[1].reg + n][l], 4);
    }
}

static void transfer_cut(struct wave *w, const struct inst *i, const struct place *places,
                         uint64_t lanes) {
    bool loads = i->dst.kind != O_NONE, stores = i->src[1].kind != O_NONE;
    if (loads && !stores)
        load_cut(w, i, places, lanes);
    else if (!loads)
        store_cut(w, i, places, lanes);
    else /* an atomic outside the bound returns 0 as the old value */
        for (unsigned r = 0; r < softgpu_type_dwords(i->row->dst); r++)
            for (uint64_t m = lanes; m; m &= m - 1)
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
    struct place places[LANES];
    uint64_t va[LANES], mask = wave_exec(w), inside = 0;
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        places[l] = place_of(w, i, &b, soffset, l);
        va[l] = places[l].va;
        inside |= (uint64_t)(places[l].have == bytes) << l;
    }
    struct access a;
    if (!softgpu_locate_global(w, i, va, inside, &a))
        return;
    softgpu_transfer(w, i, &a);
    if (mask & ~inside)
        transfer_cut(w, i, places, mask & ~inside);
}

#define ROW(op_, name_, targets_, dst_, data_, move_)                                              \
    INFO_ROW(op_, name_, targets_, dst_, B64, data_, NONE, move_)

static const struct row rows[] = {
#include "mubuf.def"
};

const struct rows softgpu_rows_mubuf = FAMILY(rows);
