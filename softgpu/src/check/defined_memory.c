/* Tracks undefined bits through loads, stores and atomics. Each bit of memory has a shadow bit,
 * which is 1 if the memory bit is defined. An untouched page of shadow bits therefore stands for
 * undefined memory. */
#include "../isa/operand.h"
#include "../isa/smem.h"
#include "defined.h"
#include "hooks.h"

#include <sys/mman.h>

/* ---- the bits of allocations ---- */

uint8_t *softgpu_bits_begin(uint64_t size) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    if (!softgpu_defined_enabled())
        return NULL;
    void *bits = mmap(NULL, size, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    return bits == MAP_FAILED ? NULL : bits;
}

void softgpu_bits_end(uint8_t *bits, uint64_t size) {
    if (bits)
        munmap(bits, size);
}

/* ---- where the bits of an access are ---- */

static bool is_atomic(enum move move) {
    return move == MV_ATOMIC_32 || move == MV_ATOMIC_64;
}

static bool is_within(const char *at, const uint8_t *begin, size_t size) {
    return begin && (uintptr_t)at - (uintptr_t)begin < size;
}

/* Finds the shadow bits of an access to workgroup memory or scratch, and returns the kind of
 * memory. softgpu_check_lanes has already found the shadow bits of global memory. */
static enum softgpu_memory find_bits(struct wave *w, const struct access *a) {
    const struct group *g = w->group;
    const char *first = a->at[__builtin_ctzll(a->mask)];
    bool scratch = is_within(first, g->scratch, g->scratch_capacity);
    bool lds = !scratch && is_within(first, g->lds, g->lds_capacity);
    if (!scratch && !lds)
        return SOFTGPU_GLOBAL;
    const uint8_t *own = scratch ? g->scratch : g->lds;
    uint8_t *bits = scratch ? g->bits->scratch : g->bits->lds;
    for (uint64_t m = a->mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        size_t offset = (size_t)((const uint8_t *)a->at[l] - own);
        w->defined->at[l] = bits + offset;
        w->defined->va[l] = offset;
    }
    w->defined->to_host = 0;
    return scratch ? SOFTGPU_SCRATCH : SOFTGPU_WORKGROUP;
}

static uint32_t undefined_at(const uint8_t *bits, size_t at, unsigned bytes) {
    uint32_t defined = UINT32_MAX;
    if (bits)
        memcpy(&defined, bits + at, bytes);
    return ~defined;
}

static void define_at(uint8_t *bits, size_t at, uint32_t undefined, unsigned bytes) {
    uint32_t defined = ~undefined;
    if (bits)
        memcpy(bits + at, &defined, bytes);
}

/* ---- registers ---- */

static uint32_t bits_of_lane(const struct softgpu_defined *d, unsigned reg, int l) {
    return d->holes[reg] >> l & 1 ? d->v[reg][l] : 0;
}

static void set_lane(struct softgpu_defined *d, unsigned reg, int l, uint32_t undefined) {
    uint64_t lane = UINT64_C(1) << l;
    d->v[reg][l] = undefined;
    d->holes[reg] = undefined ? d->holes[reg] | lane : d->holes[reg] & ~lane;
}

static struct softgpu_origin origin_of(const struct wave *w, const struct inst *i, int lane,
                                       enum softgpu_memory memory) {
    return (struct softgpu_origin){i, w->code->va + i->offset, w->defined->va[lane], memory};
}

/* ---- loads ---- */

/* Records a lane's load as the origin of the register's undefined bits. */
static void note_origin(struct wave *w, const struct inst *i, unsigned reg, int lane,
                        enum softgpu_memory memory) {
    w->defined->v_origin[reg] = origin_of(w, i, lane, memory);
    if (memory == SOFTGPU_GLOBAL && !w->group->dispatch->launch)
        softgpu_copy_takes(w->defined->va[lane], softgpu_move_bytes(move_of(i->row)));
}

static void load_dwords(struct wave *w, const struct inst *i, const struct access *a,
                        unsigned dwords, enum softgpu_memory memory) {
    struct softgpu_defined *d = w->defined;
    for (unsigned n = 0; n < dwords; n++) {
        unsigned reg = i->dst.reg + n;
        uint64_t holes = 0;
        for (uint64_t m = a->mask; m; m &= m - 1) {
            int l = __builtin_ctzll(m);
            uint32_t undefined = undefined_at(d->at[l], (size_t)n * a->stride, 4);
            d->v[reg][l] = undefined;
            holes |= (uint64_t)(undefined != 0) << l;
        }
        d->holes[reg] = (d->holes[reg] & ~a->mask) | holes;
        if (holes)
            note_origin(w, i, reg, __builtin_ctzll(holes), memory);
    }
}

/* Returns a register's undefined bits after a load of one or two bytes. If the load extends an
 * undefined sign bit, all copies of the bit are undefined. */
static uint32_t loaded_part(enum move move, uint32_t part, uint32_t old) {
    switch (move) {
    case MV_LOAD_I8:
        return (uint32_t)(int8_t)part;
    case MV_LOAD_I16:
        return (uint32_t)(int16_t)part;
    case MV_LOAD_U8_LO:
    case MV_LOAD_16_LO:
        return (old & 0xffff0000) | part;
    case MV_LOAD_U8_HI:
    case MV_LOAD_16_HI:
        return (old & 0xffff) | part << 16;
    case MV_LOAD_I8_LO:
        return (old & 0xffff0000) | (uint16_t)(int8_t)part;
    case MV_LOAD_I8_HI:
        return (old & 0xffff) | (uint32_t)(uint16_t)(int8_t)part << 16;
    default:
        return part;
    }
}

static void load_part(struct wave *w, const struct inst *i, const struct access *a,
                      enum softgpu_memory memory) {
    struct softgpu_defined *d = w->defined;
    enum move move = move_of(i->row);
    unsigned bytes = softgpu_move_bytes(move), reg = i->dst.reg;
    uint32_t mask = bytes == 1 ? 0xff : 0xffff;
    for (uint64_t m = a->mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        uint32_t part = undefined_at(d->at[l], 0, bytes) & mask;
        set_lane(d, reg, l, loaded_part(move, part, bits_of_lane(d, reg, l)));
        if (part)
            note_origin(w, i, reg, l, memory);
    }
}

/* ---- stores ---- */

static void use_by_host(struct wave *w, const struct inst *i, unsigned reg, uint64_t mask) {
    softgpu_use_lanes(w, i, reg, 1, mask & w->defined->to_host, "host");
}

static void store(struct wave *w, const struct inst *i, const struct access *a, unsigned bytes,
                  unsigned shift) {
    struct softgpu_defined *d = w->defined;
    unsigned dwords = bytes < 4 ? 1 : bytes / 4;
    for (unsigned n = 0; n < dwords; n++) {
        unsigned reg = i->src[1].reg + n;
        if (bytes >= 4)
            use_by_host(w, i, reg, a->mask);
        for (uint64_t m = a->mask; m; m &= m - 1) {
            int l = __builtin_ctzll(m);
            define_at(d->at[l], (size_t)n * a->stride, bits_of_lane(d, reg, l) >> shift,
                      bytes < 4 ? bytes : 4);
        }
    }
}

/* Reports an undefined bit in the stored part of a register, if the host can read the stored
 * bytes. */
static void use_part(struct wave *w, const struct inst *i, uint64_t mask, unsigned bytes,
                     unsigned shift) {
    struct softgpu_defined *d = w->defined;
    unsigned reg = i->src[1].reg;
    uint32_t part = (bytes == 1 ? 0xffu : 0xffffu) << shift;
    for (uint64_t m = mask & d->to_host & d->holes[reg]; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        if (d->v[reg][l] & part) {
            softgpu_use_lanes(w, i, reg, 1, UINT64_C(1) << l, "host");
            return;
        }
    }
}

/* ---- atomics ---- */

/* Returns the undefined bits of a dword in memory after an atomic operation. After
 * compare-and-swap, memory contains the old or the new value. A bit counts as defined if the bit is
 * defined in at least one of the two values. */
static uint32_t combined(enum atomic_op op, uint32_t old, uint32_t data, uint32_t memory,
                         uint32_t value) {
    uint32_t both = old | data;
    switch (op) {
    case SWAP:
        return data;
    case CMPSWAP:
    case DS_CMPSWAP:
    case DS_CMPSWAP_F:
    case MSKOR:
    case WRAP:
        return old & data;
    case AND:
        return both & ~(~old & ~memory) & ~(~data & ~value);
    case OR:
        return both & ~(~old & memory) & ~(~data & value);
    case XOR:
        return both;
    case ADD:
    case SUB:
    case RSUB:
        return both ? ~((both & -both) - 1) : 0;
    default:
        return both ? UINT32_MAX : 0;
    }
}

static void atomic(struct wave *w, const struct inst *i, const struct access *a,
                   enum softgpu_memory memory) {
    struct softgpu_defined *d = w->defined;
    unsigned dwords = softgpu_move_bytes(move_of(i->row)) / 4, data = i->src[1].reg;
    enum atomic_op op = atomic_of(i->row);
    /* ds_cmpst names the compare value first and the new value second. */
    if (op == DS_CMPSWAP || op == DS_CMPSWAP_F)
        data = i->src[2].kind ? i->src[2].reg : data;
    for (unsigned n = 0; n < dwords; n++) {
        use_by_host(w, i, data + n, a->mask);
        for (uint64_t m = a->mask; m; m &= m - 1) {
            int l = __builtin_ctzll(m);
            uint32_t old = undefined_at(d->at[l], (size_t)n * 4, 4), value = w->v[data + n][l];
            uint32_t given = bits_of_lane(d, data + n, l), in_memory;
            memcpy(&in_memory, a->at[l] + (size_t)n * 4, 4);
            if (old | given)
                define_at(d->at[l], (size_t)n * 4, combined(op, old, given, in_memory, value), 4);
            if (i->dst.kind == O_NONE)
                continue;
            set_lane(d, i->dst.reg + n, l, old);
            if (old)
                note_origin(w, i, i->dst.reg + n, l, memory);
        }
    }
}

/* ---- the places where the interpreter calls ---- */

void softgpu_check_transfer(struct wave *w, const struct inst *i, const struct access *a) {
    enum move move = move_of(i->row);
    unsigned bytes = softgpu_move_bytes(move);
    if (!w->defined || !a->mask)
        return;
    enum softgpu_memory memory = find_bits(w, a);
    w->defined->moved |= a->mask;
    if (is_atomic(move)) {
        atomic(w, i, a, memory);
    } else if (i->dst.kind == O_NONE) {
        unsigned shift = move == MV_STORE_8_HI || move == MV_STORE_16_HI ? 16 : 0;
        if (bytes < 4)
            use_part(w, i, a->mask, bytes, shift);
        store(w, i, a, bytes, shift);
    } else if (bytes < 4) {
        load_part(w, i, a, memory);
    } else {
        load_dwords(w, i, a, bytes / 4, memory);
    }
}

/* Tracks defined bits for ds_read2, ds_write2 and ds_wrxchg2, which access two addresses. */
void softgpu_check_two(struct wave *w, const struct inst *i, const struct access *a, uint64_t mask,
                       unsigned dwords) {
    struct softgpu_defined *d = w->defined;
    if (!d)
        return;
    bool reads = i->dst.kind, writes = i->src[1].kind;
    uint32_t loaded[4];
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        for (unsigned n = 0; n < 2 * dwords; n++) {
            size_t offset = (size_t)((uint8_t *)a[n / dwords].at[l] - w->group->lds);
            uint8_t *bits = w->group->bits->lds + offset + 4 * (size_t)(n % dwords);
            loaded[n] = undefined_at(bits, 0, 4);
            unsigned data = i->src[1 + n / dwords].reg + n % dwords;
            if (writes)
                define_at(bits, 0, bits_of_lane(d, data, l), 4);
            d->va[l] = offset;
        }
        for (unsigned n = 0; reads && n < 2 * dwords; n++) {
            set_lane(d, i->dst.reg + n, l, loaded[n]);
            if (loaded[n])
                note_origin(w, i, i->dst.reg + n, l, SOFTGPU_WORKGROUP);
        }
    }
    d->moved |= mask;
}

/* Moves the defined bits of one lane's dword from global to workgroup memory. */
void softgpu_check_to_lds(struct wave *w, const struct inst *i, int lane, uint32_t to) {
    struct softgpu_defined *d = w->defined;
    if (!d)
        return;
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    uint32_t mask = bytes == 1 ? 0xff : bytes == 2 ? 0xffff : UINT32_MAX;
    uint32_t part = undefined_at(d->at[lane], 0, bytes) & mask;
    enum move move = move_of(i->row);
    if (move == MV_LDS_I8)
        part = (uint32_t)(int8_t)part;
    else if (move == MV_LDS_I16)
        part = (uint32_t)(int16_t)part;
    define_at(w->group->bits->lds, to, part, 4);
}

static uint64_t interleaved(uint64_t base, uint32_t offset, int lane) {
    return base + (uint64_t)(offset / 4) * 4 * LANES + (unsigned)lane * 4 + offset % 4;
}

/* Holds the defined bits of a scratch access that crosses dword boundaries, because such an access
 * uses a temporary copy of its bytes. */
static _Thread_local uint8_t split_bits[LANES][16];

void softgpu_check_collect(struct wave *w, uint64_t base, uint32_t offset, int lane,
                           unsigned count) {
    if (!w->defined)
        return;
    for (unsigned n = 0; n < count; n++)
        split_bits[lane][n] = w->group->bits->scratch[interleaved(base, offset + n, lane)];
    w->defined->at[lane] = split_bits[lane];
    w->defined->va[lane] = offset;
    w->defined->to_host = 0;
}

void softgpu_check_distribute(struct wave *w, uint64_t base, uint32_t offset, int lane,
                              unsigned count) {
    for (unsigned n = 0; w->defined && n < count; n++)
        w->group->bits->scratch[interleaved(base, offset + n, lane)] = split_bits[lane][n];
}

/* ---- instructions ---- */

static void move_scalars(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    unsigned dwords = softgpu_type_dwords(i->dst.type);
    bool store = i->row->info == SM_STORE || i->row->info == SM_BUFFER_STORE;
    for (unsigned n = 0; n < dwords; n++) {
        unsigned r = i->dst.reg + n;
        uint8_t *bits = 4 * n < d->have ? d->at[0] : NULL;
        if (r >= SGPRS)
            break;
        if (store) {
            define_at(bits, 4 * (size_t)n, d->s[r], 4);
            continue;
        }
        d->s[r] = undefined_at(bits, 4 * (size_t)n, 4);
        if (d->s[r])
            d->s_origin[r] = origin_of(w, i, 0, SOFTGPU_GLOBAL);
    }
}

static void use_addresses(struct wave *w, const struct inst *i) {
    const struct operand *const scalars[] = {&i->src[2], &i->sdst};
    unsigned count = i->src[0].kind == O_VGPR ? softgpu_type_dwords(i->src[0].type) : 0;
    softgpu_use_lanes(w, i, i->src[0].reg, count, wave_exec(w), "address");
    if (i->src[0].kind == O_SGPR)
        softgpu_use_scalars(w, i, i->src[0].reg, softgpu_type_dwords(i->src[0].type), "address");
    for (unsigned n = 0; n < 2; n++)
        if (scalars[n]->kind == O_SGPR)
            softgpu_use_scalars(w, i, scalars[n]->reg, softgpu_type_dwords(scalars[n]->type),
                                "address");
}

static bool is_load_of_part(enum move move) {
    return move >= MV_LOAD_U8_LO && move <= MV_LOAD_16_HI;
}

void softgpu_defined_memory(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    uint64_t exec = wave_exec(w);
    bool scalar = i->encoding == E_SMEM;
    if (exec || scalar)
        use_addresses(w, i);
    d->moved = 0;
    d->have = 0;
    d->at[0] = NULL;
    d->to_host = 0;
    i->run(w, i);
    if (scalar && i->dst.kind == O_SGPR)
        move_scalars(w, i);
    if (i->dst.kind != O_VGPR || is_load_of_part(move_of(i->row)))
        return;
    /* Lanes whose access was refused have loaded 0. */
    unsigned dwords = softgpu_type_dwords(i->dst.type);
    for (unsigned r = i->dst.reg; r < i->dst.reg + dwords; r++)
        d->holes[r] &= ~(exec & ~d->moved);
}
