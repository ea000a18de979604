/* The pools of the blocks that the program has freed, and what a freed block waits for.
 *
 * A block that is freed on a stream is at once free for the next work of that stream: the stream
 * keeps its order. For anything else it is free once its fences are done. Stock's hipFree waits for
 * the whole device, and so forgives a free on a stream that does not come after all work on the
 * block. So a block has a fence of each other stream, too, that was at work at the free.
 *
 * Sizes are rounded to 256 bytes and served exactly. A block is never split, so no smaller piece
 * ever holds one back.
 *
 * A hit is one compare-and-swap when a block is taken and two when it is freed; no lock, no
 * allocation, no call of HIP. */
#ifndef MGPU_RT_BLOCKS_POOL_H
#define MGPU_RT_BLOCKS_POOL_H

#include "atomics.h"
#include "check.h"
#include "likely.h"
#include "proof.h"
#include "shared/handles.h"
#include "shared/types.h"

static inline size_t block_round(size_t bytes) {
    return (bytes + BLOCK_GRAIN - 1) / BLOCK_GRAIN * BLOCK_GRAIN;
}

static inline size_t block_set(size_t size) {
    return (size / BLOCK_GRAIN * 0x9E3779B97F4A7C15u) >> 60;
}

static inline void *block_address(const struct block *block) {
    return (void *)(uintptr_t)block->handle.key;
}

/* For a block that the reader does not own: HIP may have handed its address out again. */
static inline size_t block_size(const struct block *block) {
    return load_relaxed(&block->size);
}
static inline int block_device(const struct block *block) {
    return load_relaxed(&block->device);
}

/* True if the block was `from`, and is `to` now. */
static inline bool block_change(struct block *block, int from, int to) {
    return block && cas_acq_rel(&block->state, &from, to);
}

static inline bool block_held_by_program(const struct block *block) {
    const int state = load_acquire(&block->state);
    return state == BLOCK_LIVE || state == BLOCK_SHARED || state == BLOCK_GRAPH;
}

/* By who has taken it; others may read. */
static inline void block_note_use(struct block *block) {
    store_relaxed(&block->uses, block->uses + 1);
}

/* ---- pools ---- */

/* Fences a block that the caller has just made IDLE: a free on `stream`, in whose order it was
 * used. It gets the next fence of that stream, and with `care` one of each other stream of the
 * device that is at work. False if the free is to wait for the device, as stock's does: many blocks
 * wait already, or there is no memory for fences. */
bool block_fence(struct block *block, struct stream *stream, bool care);

/* Does so where no work uses the block any more, as its device is idle. */
void block_fence_idle(struct block *block);

/* Removes the fences of a block that the caller owns. */
void block_clear_fences(struct block *block);

/* Puts an idle block that has its fences into a pool. */
void block_pool_put(struct block *block);

/* Takes a block of this size out of a way of a pool: the caller owns it. NULL if there is none. */
static inline struct block *block_pool_take_way(struct block **way, size_t size) {
    struct block *block = load_acquire(way);
    if (!block || block_size(block) != size || !cas_acq_rel(way, &block, NULL))
        return NULL;
    if (UNLIKELY(block->size != size)) { /* it left and came back as another block */
        block_pool_put(block);
        return NULL;
    }
    CHECK(load_relaxed(&block->state) == BLOCK_IDLE || load_relaxed(&block->state) == BLOCK_GONE);
    return block;
}

/* Takes a block of this size out of the ways of a stream's pool. Each block there is ready for the
 * next work of that stream. */
static inline struct block *block_pool_take_own(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    struct block *block = NULL;
    for (int way = 0; way < POOL_WAYS && !block; way++)
        block = block_pool_take_way(&ways[way], size);
    return block;
}

/* Takes a block of this size, device memory or shared, that is ready for work in the order of
 * `stream`; NULL stands for any order. Looks at the stream's own pool, at the device's and at those
 * of 8 other streams; the next search goes on behind them. Asks HIP about streams that nobody
 * holds. NULL if there is none. */
struct block *block_pool_search(int device, size_t size, struct stream *stream, bool shared);

/* Takes an idle block out of where it is; false if it is in no pool. Under tables_lock. */
bool block_unlink(struct block *block);

/* Empties the pools of a device's own memory. Under tables_lock. */
void block_pools_empty(int device);

/* A stream was entered, perhaps with a handle that HIP has handed out before, on another device.
 * The blocks of its predecessor stay with that one's device. */
void block_pool_stream_begins(struct stream *stream);

#endif
