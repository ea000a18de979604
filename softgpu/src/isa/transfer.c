/* Implements loads, stores and atomics on each lane's bytes, which other files locate. */
#include "../check/hooks.h"
#include "lanes.h"
#include "memory.h"
#include "operand.h"

unsigned softgpu_move_bytes(enum move move) {
    static const uint8_t bytes[MV_KINDS] = {
        [MV_LOAD_U8] = 1,    [MV_LOAD_I8] = 1,     [MV_LOAD_U16] = 2,   [MV_LOAD_I16] = 2,
        [MV_LOAD_U8_LO] = 1, [MV_LOAD_U8_HI] = 1,  [MV_LOAD_I8_LO] = 1, [MV_LOAD_I8_HI] = 1,
        [MV_LOAD_16_LO] = 2, [MV_LOAD_16_HI] = 2,  [MV_LOAD_32] = 4,    [MV_LOAD_64] = 8,
        [MV_LOAD_96] = 12,   [MV_LOAD_128] = 16,   [MV_STORE_8] = 1,    [MV_STORE_8_HI] = 1,
        [MV_STORE_16] = 2,   [MV_STORE_16_HI] = 2, [MV_STORE_32] = 4,   [MV_STORE_64] = 8,
        [MV_STORE_96] = 12,  [MV_STORE_128] = 16,  [MV_ATOMIC_32] = 4,  [MV_ATOMIC_64] = 8,
        [MV_LDS_U8] = 1,     [MV_LDS_I8] = 1,      [MV_LDS_U16] = 2,    [MV_LDS_I16] = 2,
        [MV_LDS_32] = 4,
    };
    return bytes[move];
}

#define ACTIVE(l)                                                                                  \
    for (uint64_t m_ = a->mask; m_; m_ &= m_ - 1)                                                  \
        for (int l = __builtin_ctzll(m_), once_ = 1; once_; once_ = 0)

/* Returns true if the bytes of all lanes are contiguous, as in a loop over an array. One copy then
 * replaces 64 copies. */
VECTORISED static bool side_by_side(char *const *at, unsigned bytes) {
    uint64_t base = (uintptr_t)at[0], wrong = 0;
    for (int l = 0; l < LANES; l++)
        wrong |= (uintptr_t)at[l] - base - (uint64_t)bytes * (unsigned)l;
    return !wrong;
}

static bool consecutive(const struct access *a, unsigned bytes) {
    return a->mask == UINT64_MAX && a->stride == 4 && side_by_side(a->at, bytes);
}

static void load_dwords(struct wave *w, unsigned reg, unsigned dwords, const struct access *a) {
    if (consecutive(a, 4 * dwords)) {
        const char *from = a->at[0];
        if (dwords == 1) {
            memcpy(w->v[reg], from, sizeof w->v[reg]);
            return;
        }
        for (unsigned n = 0; n < dwords; n++)
            for (int l = 0; l < LANES; l++)
                memcpy(&w->v[reg + n][l], from + 4 * (dwords * (unsigned)l + n), 4);
        return;
    }
    for (unsigned n = 0; n < dwords; n++) {
        uint32_t *d = w->v[reg + n];
        size_t at = (size_t)n * a->stride;
        if (a->mask == UINT64_MAX)
            for (int l = 0; l < LANES; l++)
                memcpy(&d[l], a->at[l] + at, 4);
        else
            ACTIVE(l) memcpy(&d[l], a->at[l] + at, 4);
    }
}

static void store_dwords(struct wave *w, unsigned reg, unsigned dwords, const struct access *a) {
    if (dwords == 1 && consecutive(a, 4)) {
        memcpy(a->at[0], w->v[reg], sizeof w->v[reg]);
        return;
    }
    /* Stores lane by lane, so that the highest lane's value remains if several lanes store to one
     * address. */
    ACTIVE(l)
    for (unsigned n = 0; n < dwords; n++)
        memcpy(a->at[l] + (size_t)n * a->stride, &w->v[reg + n][l], 4);
}

static void load_part(struct wave *w, unsigned reg, enum move move, const struct access *a) {
    uint32_t *d = w->v[reg];
    ACTIVE(l) {
        uint16_t half = 0;
        memcpy(&half, a->at[l], softgpu_move_bytes(move));
        switch (move) {
        case MV_LOAD_I8:
            d[l] = (uint32_t)(int8_t)half;
            break;
        case MV_LOAD_I16:
            d[l] = (uint32_t)(int16_t)half;
            break;
        case MV_LOAD_U8_LO:
        case MV_LOAD_16_LO:
            d[l] = (d[l] & 0xffff0000) | half;
            break;
        case MV_LOAD_U8_HI:
        case MV_LOAD_16_HI:
            d[l] = (d[l] & 0xffff) | (uint32_t)half << 16;
            break;
        case MV_LOAD_I8_LO:
            d[l] = (d[l] & 0xffff0000) | (uint16_t)(int8_t)half;
            break;
        case MV_LOAD_I8_HI:
            d[l] = (d[l] & 0xffff) | (uint32_t)(uint16_t)(int8_t)half << 16;
            break;
        default:
            d[l] = half;
        }
    }
}

static void store_part(struct wave *w, unsigned reg, enum move move, const struct access *a) {
    unsigned shift = move == MV_STORE_8_HI || move == MV_STORE_16_HI ? 16 : 0;
    ACTIVE(l) {
        uint32_t value = w->v[reg][l] >> shift;
        memcpy(a->at[l], &value, softgpu_move_bytes(move));
    }
}

static uint64_t pair(const struct wave *w, unsigned reg, int l) {
    return w->v[reg][l] | (uint64_t)w->v[reg + 1][l] << 32;
}

static void atomics(struct wave *w, const struct inst *i, const struct access *a) {
    const struct row *row = i->row;
    enum atomic_op op = atomic_of(row);
    bool wide = move_of(row) == MV_ATOMIC_64, returns = i->dst.kind != O_NONE;
    unsigned data = i->src[1].reg, data2 = data;
    if (i->encoding == E_DS)
        data2 = i->src[2].kind ? i->src[2].reg : data;
    else if (op == CMPSWAP) /* the registers contain the new value, then the compare value */
        data2 = data + (wide ? 2 : 1);
    ACTIVE(l) {
        if (wide) {
            uint64_t old = softgpu_atomic64(a->at[l], op, pair(w, data, l), pair(w, data2, l));
            if (returns) {
                w->v[i->dst.reg][l] = (uint32_t)old;
                w->v[i->dst.reg + 1][l] = (uint32_t)(old >> 32);
            }
        } else {
            uint64_t old = softgpu_atomic32(a->at[l], op, w->v[data][l], w->v[data2][l]);
            if (returns)
                w->v[i->dst.reg][l] = (uint32_t)old;
        }
    }
}

void softgpu_transfer(struct wave *w, const struct inst *i, const struct access *a) {
    enum move move = move_of(i->row);
    unsigned data = i->src[1].reg;
    CHECK_TRANSFER(w, i, a);
    switch (move) {
    case MV_LOAD_32:
    case MV_LOAD_64:
    case MV_LOAD_96:
    case MV_LOAD_128:
        load_dwords(w, i->dst.reg, softgpu_move_bytes(move) / 4, a);
        break;
    case MV_STORE_32:
    case MV_STORE_64:
    case MV_STORE_96:
    case MV_STORE_128:
        store_dwords(w, data, softgpu_move_bytes(move) / 4, a);
        break;
    case MV_STORE_8:
    case MV_STORE_8_HI:
    case MV_STORE_16:
    case MV_STORE_16_HI:
        store_part(w, data, move, a);
        break;
    case MV_ATOMIC_32:
    case MV_ATOMIC_64:
        atomics(w, i, a);
        break;
    default:
        load_part(w, i->dst.reg, move, a);
    }
}
