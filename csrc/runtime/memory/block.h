/* Reads and changes an entry of the table of blocks, and computes a block's size.
 *
 * Up to 64 KiB a block has the requested size, rounded up to 256 bytes. Above 64 KiB the size is
 * rounded up to an eighth of a power of two, so that requests of similar sizes share blocks.
 * bench/results/blocks.md shows what other choices cost.
 *
 * An entry is never freed, so any thread may read an entry at any time. Only the owner of a block
 * changes it: the thread that took the block out of a pool, or the program that holds the block. */
#ifndef MGPU_RT_BLOCK_H
#define MGPU_RT_BLOCK_H

#include "shared/types.h"

static inline void *block_address(const struct block *block) {
    return (void *)(uintptr_t)block->handle.key;
}

/* Returns a block's size; the caller need not own the block. The size may change at any time,
 * because HIP may reuse the block's address for an allocation of another size. */
static inline size_t block_size(const struct block *block) {
    return load_relaxed(&block->size);
}
static inline int block_device(const struct block *block) {
    return load_relaxed(&block->device);
}

/* Returns the bytes for which the program asked, of a block that it holds. Up to 64 KiB this is the
 * block's size, because a hit does not record the bytes of a small block. */
static inline size_t block_asked(const struct block *block) {
    return range_used(&block->range);
}

/* Moves a block from one state to another. Returns true if the block was in state `from` and is now
 * in state `to`.
 */
static inline bool block_change(struct block *block, int from, int to) {
    return block && cas_acq_rel(&block->state, &from, to);
}

static inline bool block_held_by_program(const struct block *block) {
    return load_acquire(&block->state) >= BLOCK_LIVE;
}

/* ---- sizes ---- */

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

/* Returns a number below POOL_SETS. The multiplier was chosen by search: of 16 sizes that follow
 * each other, at most two small or three large ones share a set. */
static inline size_t block_set(size_t size) {
    return ((uint32_t)size * 0x69D04EF1u) >> 28;
}

#endif
