/* Implements the atomic operations of one lane. Several threads run workgroups at once, and the
 * host may read the same memory. Each operation must therefore be atomic, even if the host's
 * processor has no such atomic instruction. */
#include "lanes.h"
#include "memory.h"

static uint32_t add_halves(uint32_t a, uint32_t b) {
    uint32_t lo = bits_of_f16(f16_of((uint16_t)a) + f16_of((uint16_t)b));
    uint32_t hi = bits_of_f16(f16_of((uint16_t)(a >> 16)) + f16_of((uint16_t)(b >> 16)));
    return lo | hi << 16;
}

static uint32_t bf16_sum(uint32_t a, uint32_t b) {
    uint32_t sum = bits_of_f32(f32_of(a << 16) + f32_of(b << 16));
    if (is_nan32(sum))
        return sum >> 16 | 0x40;
    return (sum + 0x7fff + (sum >> 16 & 1)) >> 16;
}

static uint32_t add_bf16_halves(uint32_t a, uint32_t b) {
    return bf16_sum(a & 0xffff, b & 0xffff) | bf16_sum(a >> 16, b >> 16) << 16;
}

/* Computes an operation on integers of either size. The operands are given as unsigned and as
 * signed numbers, and the caller cuts the result. */
static uint64_t apply(enum atomic_op op, uint64_t old, uint64_t data, uint64_t data2, int64_t s_old,
                      int64_t s_data) {
    switch (op) {
    case SWAP:
        return data;
    case CMPSWAP:
        return old == data2 ? data : old;
    case DS_CMPSWAP:
        return old == data ? data2 : old;
    case ADD:
        return old + data;
    case SUB:
        return old - data;
    case RSUB:
        return data - old;
    case SMIN:
        return s_old < s_data ? old : data;
    case UMIN:
        return old < data ? old : data;
    case SMAX:
        return s_old > s_data ? old : data;
    case UMAX:
        return old > data ? old : data;
    case AND:
        return old & data;
    case OR:
        return old | data;
    case XOR:
        return old ^ data;
    case INC:
        return old >= data ? 0 : old + 1;
    case DEC:
        return old == 0 || old > data ? data : old - 1;
    case MSKOR:
        return (old & ~data) | data2;
    case WRAP:
        return old >= data ? old - data : old + data2;
    default:
        return old;
    }
}

static uint32_t apply32(enum atomic_op op, uint32_t old, uint32_t data, uint32_t data2) {
    switch (op) {
    case DS_CMPSWAP_F:
        return f32_of(old) == f32_of(data) ? data2 : old;
    case ADD_F:
        return bits_of_f32(f32_of(old) + f32_of(data));
    case MIN_F:
        return min_f32_bits(old, data, false);
    case MAX_F:
        return max_f32_bits(old, data, false);
    case ADD_PK_F16:
        return add_halves(old, data);
    case ADD_PK_BF16:
        return add_bf16_halves(old, data);
    default:
        return (uint32_t)apply(op, old, data, data2, (int32_t)old, (int32_t)data);
    }
}

static uint64_t apply64(enum atomic_op op, uint64_t old, uint64_t data, uint64_t data2) {
    switch (op) {
    case DS_CMPSWAP_F:
        return f64_of(old) == f64_of(data) ? data2 : old;
    case ADD_F:
        return bits_of_f64(f64_of(old) + f64_of(data));
    case MIN_F:
        return min_max_f64_bits(old, data, false, false);
    case MAX_F:
        return min_max_f64_bits(old, data, false, true);
    default:
        return apply(op, old, data, data2, (int64_t)old, (int64_t)data);
    }
}

uint64_t softgpu_atomic32(char *at, enum atomic_op op, uint32_t data, uint32_t data2) {
    uint32_t *p = (uint32_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, apply32(op, old, data, data2), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    return old;
}

uint64_t softgpu_atomic64(char *at, enum atomic_op op, uint64_t data, uint64_t data2) {
    uint64_t *p = (uint64_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, apply64(op, old, data, data2), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    return old;
}
