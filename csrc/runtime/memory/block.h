/* Reads and changes an entry of the table of blocks.
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

#endif
