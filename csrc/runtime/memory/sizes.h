/* The sizes of blocks. Up to 64 KiB a block has the requested size, rounded up to 256 bytes. Above
 * 64 KiB the size is rounded up to an eighth of a power of two, so that requests of similar sizes
 * share blocks. bench/results/blocks.md shows what other choices cost. */
#ifndef MGPU_RT_SIZES_H
#define MGPU_RT_SIZES_H

#include "shared/types.h"

/* Rounds up to a multiple of 256 bytes. */
static inline size_t block_round(size_t bytes) {
    return (bytes + BLOCK_GRAIN - 1) & -(size_t)BLOCK_GRAIN;
}

/* Returns the size of a block for a request of at most SIZE_MAX / 2 bytes. */
static inline size_t block_class(size_t bytes) {
    enum { BITS = 64, KEPT = 4 }; /* an eighth of 2^n is 2^(n-3); `bytes` - 1 has n + 1 bits */
    if (bytes <= BLOCK_EXACT_UP_TO)
        return block_round(bytes);
    const size_t step = (size_t)1 << (BITS - KEPT - __builtin_clzll(bytes - 1));
    return (bytes + step - 1) & -step;
}

/* Returns true for the size of a large block that no later request shares. HIP had no memory for
 * the rounded size, or the limit left no room for slack. Such a block leaves at its free. */
static inline bool block_size_is_exact(size_t size) {
    return size > BLOCK_EXACT_UP_TO && size != block_class(size);
}

/* Returns a number below POOL_SETS. The multiplier was chosen by search: of 16 sizes that follow
 * each other, at most two small or three large ones share a set. */
static inline size_t block_set(size_t size) {
    return ((uint32_t)size * 0x69D04EF1u) >> 28;
}

#endif
