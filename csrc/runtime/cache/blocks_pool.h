/* The blocks of device memory that mgpuMemAlloc handed out, and the pools of those given back.
 *
 * A block given back on a stream is at once free for the next work of that stream: the stream keeps
 * its order. For anything else it is free once that stream was synchronised past the free; only
 * hipFree, which stock calls, waits for the device. Sizes are rounded to 256 bytes and served
 * exactly. A block is never split, so no smaller piece ever holds one back.
 *
 * A hit is one compare-and-swap when a block is taken and two when it is given back; no lock, no
 * allocation, no call of HIP. */
#ifndef MGPU_RT_BLOCKS_POOL_H
#define MGPU_RT_BLOCKS_POOL_H

#include "base/atomics.h"
#include "base/check.h"
#include "base/handles.h"
#include "base/likely.h"
#include "base/proof.h"
#include "cache/streams.h"
#include "cache/types.h"

static inline size_t block_round(size_t bytes) {
    return (bytes + BLOCK_GRAIN - 1) / BLOCK_GRAIN * BLOCK_GRAIN;
}

static inline size_t block_set(size_t size) {
    return (size / BLOCK_GRAIN * 0x9E3779B97F4A7C15u) >> 60;
}

static inline void *block_address(const struct block *block) {
    return (void *)(uintptr_t)block->handle.key;
}

/* For a block that the reader does not own: HIP may hand its address out anew meanwhile. */
static inline size_t block_size(const struct block *block) {
    return load_relaxed(&block->size);
}
static inline int block_device(const struct block *block) {
    return load_relaxed(&block->device);
}

static inline bool block_held_by_program(const struct block *block) {
    const int state = load_acquire(&block->state);
    return state == BLOCK_LIVE || state == BLOCK_SHARED || state == BLOCK_GRAPH;
}

/* By who has taken it; others may read meanwhile. */
static inline void block_note_use(struct block *block) {
    store_relaxed(&block->uses, block->uses + 1);
}

/* Gives a block that the caller has just made CACHED to its stream's pool. If stream is NULL it
 * goes to the device's pool, and no work may still use it. False without memory for the pool: the
 * block is the caller's still. */
bool block_put(struct block *block, struct stream *stream);

/* The same of a shared block, which goes into its device's pool of those. */
void block_put_shared(struct block *block, struct stream *stream);

/* The same of either, where no work uses it any more. */
void block_put_idle(struct block *block);

/* A block of exactly this (rounded) size from the pool's ways, now LIVE and the caller's; NULL if
 * there is none. */
static inline struct block *block_take(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *block = load_acquire(&ways[way]);
        if (!block || block_size(block) != size || !cas_acq_rel(&ways[way], &block, NULL))
            continue;
        if (UNLIKELY(block->size != size)) { /* gone and back meanwhile, as another block */
            (void)block_put(block, pool->owner);
            continue;
        }
        CHECK(load_relaxed(&block->state) == BLOCK_CACHED ||
              load_relaxed(&block->state) == BLOCK_GONE);
        block_note_use(block);
        PROOF_STEP(block_handed_out_is_held, store_release(&block->state, BLOCK_LIVE));
        return block;
    }
    return NULL;
}

/* The device's pool: blocks that are idle for every stream. device < MOST_DEVICES. */
struct block_pool *block_device_pool(int device);

/* A stream was entered, perhaps with a handle that HIP has handed out before, on another device.
 * The blocks of its predecessor stay with that one's device. */
void block_stream_enters(struct stream *stream);

/* A block of this size from the device. Looks at this stream's spilled blocks, at those that waited
 * for other streams and at the device's pool. Then looks at other streams that are known to be
 * idle. Looks at 8 other streams at most, and asks HIP about those that nobody holds; the next
 * search goes on behind them. stream may be NULL. NULL if there is none. */
struct block *block_search(int device, size_t size, struct stream *stream);

/* A shared block of this size that is idle: the host may write to it at once. NULL if there is
 * none. */
struct block *block_search_shared(int device, size_t size);

/* Takes a cached block out of where it is; false if it is in no pool just now. Under tables_lock.
 */
bool block_unlink(struct block *block, struct stream *stream);

/* Forgets all that is in a pool of a device's own memory. Under tables_lock. */
void block_pools_empty(int device);

#endif
