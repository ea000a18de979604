/* Implements DS: workgroup memory, and exchanges of data between lanes. */
#include "../check/hooks.h"
#include "lanes.h"
#include "memory.h"
#include "operand.h"

/* Sizes in bytes for an instruction that moves two elements: `bytes` is an element's size, and
 * `scale` is the unit of an offset. For an instruction that moves one element, `bytes` and `scale`
 * are 0. */
struct two {
    unsigned bytes, scale;
};

static struct two two_of(enum move move) {
    switch (move) {
    case DS_READ2_32:
    case DS_WRITE2_32:
    case DS_WRXCHG2_32:
        return (struct two){4, 4};
    case DS_READ2_64:
    case DS_WRITE2_64:
    case DS_WRXCHG2_64:
        return (struct two){8, 8};
    case DS_READ2ST64_32:
    case DS_WRITE2ST64_32:
    case DS_WRXCHG2ST64_32:
        return (struct two){4, 4 * 64};
    case DS_READ2ST64_64:
    case DS_WRITE2ST64_64:
    case DS_WRXCHG2ST64_64:
        return (struct two){8, 8 * 64};
    default:
        return (struct two){0, 0};
    }
}

VECTORISED static void lane_offsets(uint32_t *offset, const uint32_t *base, uint32_t add) {
    EACH_LANE(l) offset[l] = base[l] + add;
}

static void move_two(struct wave *w, const struct inst *i, enum move move) {
    struct two two = two_of(move);
    unsigned dwords = two.bytes / 4;
    uint64_t mask = wave_exec(w);
    uint32_t offset[LANES], loaded[4][LANES];
    struct access a[2];
    const uint32_t *base = w->v[i->src[0].reg];
    for (unsigned n = 0; n < 2; n++) {
        lane_offsets(offset, base, ((uint32_t)i->imm >> 8 * n & 0xff) * two.scale);
        if (!softgpu_locate_lds(w, i, offset, mask, two.bytes, &a[n]))
            return;
        mask = a[n].mask;
    }
    bool reads = i->dst.kind, writes = i->src[1].kind;
    CHECK_TWO(w, i, a, mask, dwords);
    if (reads && !writes && mask == UINT64_MAX) {
        for (unsigned n = 0; n < 2; n++)
            for (unsigned r = 0; r < dwords; r++) {
                uint32_t *d = w->v[i->dst.reg + n * dwords + r];
                for (int l = 0; l < LANES; l++)
                    memcpy(&d[l], a[n].at[l] + 4 * r, 4);
            }
        return;
    }
    for (unsigned n = 0; n < 2; n++)
        for (uint64_t m = mask; m; m &= m - 1) {
            int l = __builtin_ctzll(m);
            for (unsigned r = 0; r < dwords; r++) {
                if (reads)
                    memcpy(&loaded[n * dwords + r][l], a[n].at[l] + 4 * r, 4);
                if (writes)
                    memcpy(a[n].at[l] + 4 * r, &w->v[i->src[1 + n].reg + r][l], 4);
            }
        }
    if (reads)
        softgpu_blend(w, w->v[i->dst.reg], loaded[0], 2 * dwords, mask);
}

/* Permutes data between lanes: each lane's byte address, modulo the wave size, selects a lane.
 * permute stores data to the selected lane, and bpermute loads data from the selected lane. No data
 * comes from inactive lanes. */
static void permute(struct wave *w, const struct inst *i, bool push) {
    uint32_t result[LANES] = {0};
    uint64_t exec = wave_exec(w);
    const uint32_t *address = w->v[i->src[0].reg], *data = w->v[i->src[1].reg];
    for (unsigned l = 0; l < LANES; l++) {
        unsigned other = (address[l] + (uint32_t)i->imm) / 4 % LANES;
        unsigned from = push ? l : other, to = push ? other : l;
        if (exec >> from & 1)
            result[to] = data[from];
    }
    softgpu_blend(w, w->v[i->dst.reg], result, 1, exec);
}

static unsigned swizzled_lane(uint32_t pattern, unsigned l) {
    unsigned group = l & ~31u, n = l & 31;
    if (pattern >= 0xc000) { /* rotates the lane number modulo 32, but preserves the lane number's
                                bits in `keep` */
        unsigned amount = pattern >> 5 & 31, keep = pattern & 31;
        unsigned turned = pattern >> 10 & 1 ? n - amount : n + amount;
        return group | ((n & keep) | (turned & 31 & ~keep));
    }
    if (pattern & 0x8000) /* each lane reads any lane of its group of four */
        return (l & ~3u) | (pattern >> 2 * (l & 3) & 3);
    return group | (((n & pattern) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
}

static void swizzle(struct wave *w, const struct inst *i) {
    uint32_t result[LANES], pattern = (uint32_t)i->imm & 0xffff;
    uint64_t exec = wave_exec(w);
    if (pattern >= 0xe000) {
        softgpu_wave_fault(w, i, -1, "the FFT patterns of ds_swizzle are not emulated");
        return;
    }
    for (unsigned l = 0; l < LANES; l++) {
        unsigned from = swizzled_lane(pattern, l) & 63;
        result[l] = exec >> from & 1 ? w->v[i->src[0].reg][from] : 0;
    }
    softgpu_blend(w, w->v[i->dst.reg], result, 1, exec);
}

void softgpu_run_ds(struct wave *w, const struct inst *i) {
    enum move move = move_of(i->row);
    switch (move) {
    case DS_NOP:
        return;
    case DS_NONE:
    case DS_NO_ADDRESS:
        softgpu_run_unknown(w, i);
        return;
    case DS_GWS_INIT:
        softgpu_gws_init(w, i);
        return;
    case DS_GWS_BARRIER:
        softgpu_gws_barrier(w, i);
        return;
    case DS_SWIZZLE:
        swizzle(w, i);
        return;
    case DS_PERMUTE:
    case DS_BPERMUTE:
        permute(w, i, move == DS_PERMUTE);
        return;
    default:
        break;
    }
    if (i->gds) {
        softgpu_wave_fault(w, i, -1, "global data share is not emulated");
    } else if (two_of(move).bytes) {
        move_two(w, i, move);
    } else {
        uint32_t offset[LANES];
        struct access a;
        lane_offsets(offset, w->v[i->src[0].reg], (uint32_t)i->imm);
        if (softgpu_locate_lds(w, i, offset, wave_exec(w), softgpu_move_bytes(move), &a))
            softgpu_transfer(w, i, &a);
    }
}

#define ROW(op_, name_, targets_, dst_, data0_, data1_, move_)                                     \
    INFO_ROW(op_, name_, targets_, dst_, B32, data0_, data1_, move_)

static const struct row rows[] = {
#include "ds.def"
};

const struct rows softgpu_rows_ds = FAMILY(rows);
