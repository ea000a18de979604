/* Translates the addresses of lanes to host addresses, or reports a fault. */
#include "memory.h"
#include "../check/hooks.h"
#include "lanes.h"
#include "operand.h"

static bool holds(const struct softgpu_range *r, uint64_t va, uint64_t size) {
    return va - r->va < r->size && r->size - (va - r->va) >= size;
}

/* The range that was found moves to the front, because a kernel's accesses mostly alternate between
 * few mappings. */
static const struct softgpu_range *find_range(struct wave *w, uint64_t va, uint64_t size) {
    struct softgpu_range *hot = w->group->hot, found;
    unsigned n = 0;
    while (n < HOT_RANGES && !holds(&hot[n], va, size))
        n++;
    if (n < HOT_RANGES) {
        found = hot[n];
    } else {
        if (!softgpu_find_range(va, &found) || !holds(&found, va, size))
            return NULL;
        n = HOT_RANGES - 1;
    }
    memmove(&hot[1], &hot[0], n * sizeof hot[0]);
    hot[0] = found;
    return &hot[0];
}

char *softgpu_host_address(struct wave *w, uint64_t va, uint64_t size) {
    const struct softgpu_range *r = w->group->hot;
    if (!holds(r, va, size))
        r = find_range(w, va, size);
    return r ? r->host + (va - r->va) : NULL;
}

/* Finds the lowest and the highest address of all active lanes. If all lanes are active, a
 * vectorised loop compares the addresses as signed numbers. An address in the upper half is
 * negative in this comparison, and an access to such an address causes a fault. */
VECTORISED static void bounds_of_all(const uint64_t *va, uint64_t *low, uint64_t *high) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int l = 0; l < LANES; l++) {
        int64_t a = (int64_t)va[l];
        lo = a < lo ? a : lo;
        hi = a > hi ? a : hi;
    }
    *low = (uint64_t)lo;
    *high = (uint64_t)hi;
}

static void bounds(const uint64_t *va, uint64_t mask, uint64_t *low, uint64_t *high) {
    uint64_t lo = UINT64_MAX, hi = 0;
    if (mask == UINT64_MAX) {
        bounds_of_all(va, low, high);
        return;
    }
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        lo = va[l] < lo ? va[l] : lo;
        hi = va[l] > hi ? va[l] : hi;
    }
    *low = lo;
    *high = hi;
}

VECTORISED static void place(char **at, const uint64_t *va, uint64_t add) {
    EACH_LANE(l) at[l] = (char *)(uintptr_t)(va[l] + add);
}

VECTORISED static void place_offsets(char **at, const uint32_t *offset, char *base) {
    EACH_LANE(l) at[l] = base + offset[l];
}

VECTORISED static uint32_t highest(const uint32_t *offset) {
    uint32_t hi = 0;
    for (int l = 0; l < LANES; l++)
        hi = offset[l] > hi ? offset[l] : hi;
    return hi;
}

static bool atomic_aligned(struct wave *w, const struct inst *i, const uint64_t *va,
                           uint64_t mask) {
    enum move move = move_of(i->row);
    unsigned bytes = softgpu_move_bytes(move);
    if (move != MV_ATOMIC_32 && move != MV_ATOMIC_64)
        return true;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        if (va[l] % bytes) {
            softgpu_memory_fault(w, i, l, "misaligned atomic access", va[l], bytes);
            return false;
        }
    }
    return true;
}

bool softgpu_locate_global(struct wave *w, const struct inst *i, const uint64_t *va, uint64_t mask,
                           struct access *a) {
    uint64_t low, high;
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    mask = CHECKED_LANES(w, i, va, mask);
    a->mask = mask;
    a->stride = 4;
    if (!mask)
        return true;
    if (!atomic_aligned(w, i, va, mask))
        return false;
    bounds(va, mask, &low, &high);
    char *host =
        high - low < UINT64_MAX - bytes ? softgpu_host_address(w, low, high - low + bytes) : NULL;
    if (host) {
        place(a->at, va, (uint64_t)(uintptr_t)host - low);
        return true;
    }
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        a->at[l] = softgpu_host_address(w, va[l], bytes);
        if (!a->at[l]) {
            softgpu_memory_fault(w, i, l, "access outside mapped memory", va[l], bytes);
            return false;
        }
    }
    return true;
}

bool softgpu_locate_lds(struct wave *w, const struct inst *i, const uint32_t *offset, uint64_t mask,
                        unsigned bytes, struct access *a) {
    uint32_t size = w->group->dispatch->lds_size;
    char *lds = (char *)w->group->lds;
    bool atomic = move_of(i->row) == MV_ATOMIC_32 || move_of(i->row) == MV_ATOMIC_64;
    a->mask = mask;
    a->stride = 4;
    if (mask == UINT64_MAX && !atomic && size >= bytes && highest(offset) <= size - bytes) {
        place_offsets(a->at, offset, lds);
        CHECK_LDS(w, i, offset, mask, bytes);
        return true;
    }
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        if (offset[l] > size || size - offset[l] < bytes) {
            CHECK_SKIPS_LANE(a->mask, w, i, l, "workgroup memory", offset[l], bytes)
            softgpu_offset_fault(w, i, l, "access outside workgroup memory", offset[l], bytes);
            return false;
        }
        if (atomic && offset[l] % bytes) {
            softgpu_offset_fault(w, i, l, "misaligned atomic access to workgroup memory", offset[l],
                                 bytes);
            return false;
        }
        a->at[l] = lds + offset[l];
    }
    CHECK_LDS(w, i, offset, a->mask, bytes);
    return true;
}

/* Scratch is interleaved: a lane's dwords are 64 dwords apart, so lanes that access the same
 * variable touch neighbouring bytes. */
static uint64_t interleaved(uint64_t base, uint32_t offset, int lane) {
    return base + (uint64_t)(offset / 4) * 4 * LANES + (unsigned)lane * 4 + offset % 4;
}

static bool outside_scratch(const struct wave *w, uint64_t base, uint32_t offset, int lane,
                            unsigned bytes) {
    uint64_t size = (uint64_t)w->group->dispatch->scratch_lane_size * LANES;
    uint64_t first = interleaved(base, offset, lane);
    uint64_t last = interleaved(base, offset % 4 + bytes - 1, lane) + (first - offset % 4) -
                    interleaved(base, 0, lane);
    return first < w->scratch_offset || last >= w->scratch_offset + size;
}

/* Locates the scratch bytes of the lanes in `mask`. `split` returns the lanes with misaligned data,
 * which cross a boundary between two dwords. */
static bool locate_scratch(struct wave *w, const struct inst *i, uint64_t base,
                           const uint32_t *offset, uint64_t mask, struct access *a,
                           uint64_t *split) {
    unsigned bytes = softgpu_move_bytes(move_of(i->row)), piece = bytes < 4 ? bytes : 4;
    *split = 0;
    a->stride = 4 * LANES;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        if (outside_scratch(w, base, offset[l], l, bytes)) {
            CHECK_SKIPS_LANE(mask, w, i, l, "scratch memory", offset[l], bytes)
            softgpu_offset_fault(w, i, l, "access outside scratch memory (stack overflow?)",
                                 offset[l], bytes);
            return false;
        }
        *split |= (uint64_t)(offset[l] % 4 + piece > 4) << l;
        a->at[l] = (char *)w->group->scratch + interleaved(base, offset[l], l);
    }
    a->mask = mask & ~*split;
    return true;
}

/* Copies a lane's bytes one by one between a buffer and interleaved scratch. */
static void collect(const struct wave *w, uint64_t base, uint32_t offset, int lane, char *bytes,
                    unsigned count) {
    for (unsigned n = 0; n < count; n++)
        bytes[n] = (char)w->group->scratch[interleaved(base, offset + n, lane)];
}

static void distribute(const struct wave *w, uint64_t base, uint32_t offset, int lane,
                       const char *bytes, unsigned count) {
    for (unsigned n = 0; n < count; n++)
        w->group->scratch[interleaved(base, offset + n, lane)] = (uint8_t)bytes[n];
}

/* amdhsa's unaligned-access mode permits any address: LLVM copies 2-byte aligned structures by
 * dwords. */
static void transfer_split(struct wave *w, const struct inst *i, uint64_t base,
                           const uint32_t *offset, uint64_t split) {
    enum { WIDEST = 16 };
    char data[LANES][WIDEST];
    struct access a = {.mask = split, .stride = 4};
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    for (uint64_t m = split; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        a.at[l] = data[l];
        collect(w, base, offset[l], l, data[l], bytes);
        CHECK_COLLECT(w, base, offset[l], l, bytes);
    }
    softgpu_transfer(w, i, &a);
    if (i->dst.kind != O_NONE)
        return;
    for (uint64_t m = split; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        distribute(w, base, offset[l], l, data[l], bytes);
        CHECK_DISTRIBUTE(w, base, offset[l], l, bytes);
    }
}

void softgpu_transfer_scratch(struct wave *w, const struct inst *i, uint64_t base,
                              const uint32_t *offset, uint64_t mask) {
    struct access a;
    uint64_t split;
    enum move move = move_of(i->row);
    if (!locate_scratch(w, i, base, offset, mask, &a, &split))
        return;
    bool atomic = move == MV_ATOMIC_32 || move == MV_ATOMIC_64;
    if (split && atomic) {
        int l = __builtin_ctzll(split);
        softgpu_offset_fault(w, i, l, "misaligned atomic access to scratch memory", offset[l],
                             softgpu_move_bytes(move));
        return;
    }
    softgpu_transfer(w, i, &a);
    if (split)
        transfer_split(w, i, base, offset, split);
}
