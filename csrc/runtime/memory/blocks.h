/* Manages the blocks of device memory that mgpuMemAlloc hands out: from HIP or the pools to the
 * program, and back.
 *
 * A stream runs its work in order, so a block that was freed on a stream is at once free for the
 * stream's next work. Work on other streams may use a block once the block's fences are done. The
 * stock hipFree waits for the whole device, so with stock a program may free a block on any stream,
 * although other streams use it. So a block also has a fence for each of the other streams that had
 * pending work at the free.
 *
 * Sizes are rounded up to 256 bytes, and a block serves only its exact size. A block is never
 * split, so the library never has to keep a whole block because of a small piece in use.
 *
 * A hit takes one compare-and-swap to allocate and two to free: no lock, no allocation, no call to
 * HIP. */
#ifndef MGPU_RT_BLOCKS_H
#define MGPU_RT_BLOCKS_H

#include "atomics.h"
#include "check.h"
#include "likely.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/handles.h"
#include "shared/sites.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "streams/streams.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"

static inline size_t block_round(size_t bytes) {
    return (bytes + BLOCK_GRAIN - 1) / BLOCK_GRAIN * BLOCK_GRAIN;
}

static inline size_t block_set(size_t size) {
    return (size / BLOCK_GRAIN * 0x9E3779B97F4A7C15u) >> 60;
}

static inline void *block_address(const struct block *block) {
    return (void *)(uintptr_t)block->handle.key;
}

/* Returns a block's size; the caller need not own the block. The size may change at any time,
 * because HIP may return the block's address again. */
static inline size_t block_size(const struct block *block) {
    return load_relaxed(&block->size);
}
static inline int block_device(const struct block *block) {
    return load_relaxed(&block->device);
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

/* Returns the stream of a handle if blocks may rely on its order: the stream's next work may use a
 * block freed on the stream. Returns NULL if the handle belongs to no such stream. */
static inline struct stream *block_order(const struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(stream && PROOF(order_is_of_a_live_stream, stream_is_live(stream)) &&
                  stream->device < MOST_DEVICES)
               ? stream
               : NULL;
}

/* Returns the entry of an address, or NULL. Lock-free. */
struct block *block_find(const void *address);
/* Returns the block that contains an address, unless the block is GONE. */
struct block *block_around(const void *address);

/* Returns the newest entry; handle_next returns the next entry. */
struct block *block_first(void);

/* Adds memory that hipMalloc (LIVE or GRAPH) or hipMallocManaged (SHARED) has returned. Returns
 * NULL if there is no memory for the entry. */
struct block *block_insert(void *address, size_t size, int device, int state);

/* ---- allocating ---- */

/* Returns whether a free puts memory of this size into a pool; otherwise HIP allocates and frees
 * it. */
bool block_serves(uint64_t bytes, int device);

/* the block for the program, or NULL; *error is HIP's answer */
struct block_allocated {
    void *address;
    enum call_how how;
    hipError_t error;
};

/* Hands out a block that the caller removed from a pool. */
static inline void block_hand_out(struct block *block, int state) {
    store_relaxed(&block->uses, block->uses + 1);
    PROOF_STEP(block_handed_out_is_held, store_release(&block->state, state));
}

/* Puts an idle block with its fences into a pool. */
void block_pool_put(struct block *block);

/* Removes a block of this size from one chain of a pool: the caller then owns the block. Returns
 * NULL if the chain has no block of this size. */
static inline struct block *block_pool_take_way(struct block **way, size_t size) {
    struct block *block = load_acquire(way);
    if (!block || block_size(block) != size || !cas_acq_rel(way, &block, NULL))
        return NULL;
    if (UNLIKELY(block->size != size)) { /* the block was freed and handed out again as another
                                          * block */
        block_pool_put(block);
        return NULL;
    }
    CHECK(load_relaxed(&block->state) == BLOCK_IDLE || load_relaxed(&block->state) == BLOCK_GONE);
    return block;
}

/* Removes a block of this size from a stream's pool; the stream's next work may use any block of
 * its pool. */
static inline struct block *block_pool_take_own(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    struct block *block = NULL;
    for (int way = 0; way < POOL_WAYS && !block; way++)
        block = block_pool_take_way(&ways[way], size);
    return block;
}

/* Returns an idle block from the pool of `order`, a stream of `device`, for the stream's next work:
 * the hit. Returns NULL if there is no such block, or no stream. */
static inline struct block *block_reuse(uint64_t bytes, int device, struct stream *order) {
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(device));
    struct block_pool *own =
        LIKELY(order && order->device == device) ? load_acquire(&order->pool) : NULL;
    struct block *block = LIKELY(own) ? block_pool_take_own(own, block_round(bytes)) : NULL;
    if (LIKELY(block))
        block_hand_out(block, BLOCK_LIVE);
    return block;
}

/* Allocates after block_reuse found no block: returns a ready block from any pool, otherwise a new
 * block from HIP. The block's next work follows `order`, a stream of the device; NULL: work on any
 * stream. A shared block is managed memory, which host and device both see. The host may write to a
 * shared block at once, so the block is reused only after all work on it, and has no stream. */
struct block_allocated block_search(uint64_t bytes, int device, struct stream *order, bool shared);

/* Allocates on the calling thread's device, for work on any stream. */
struct block_allocated block_allocate(uint64_t bytes, int device);

/* ---- freeing ---- */

/* The outcome of a free, and HIP's answer. */
struct block_freed {
    enum block_verdict {
        FREE_DONE,   /* the block is in a pool, or a graph owns it */
        FREE_WAITED, /* the library waited for the device; the block is then in a pool, or HIP freed
                      * it */
        FREE_TO_HIP, /* HIP freed the address */
        FREE_TWICE,  /* nothing was freed: the program has freed the address before */
    } verdict;
    hipError_t error;
};

/* Frees the memory at an address, as mgpuMemFree does. `stream` is the stream that used the block
 * (NULL: any stream may have used it). */
struct block_freed block_free(void *address, struct stream *stream);

/* Puts a block into a pool; the caller has just made the block IDLE, and no work uses the block. */
void block_put_done(struct block *block);

/* ---- for graphs ---- */

/* Leaves a block to a graph that still uses it: no other caller gets the block. `stream` is the
 * stream on which the program frees the block; NULL: unknown. Returns false if the program does not
 * hold the block. */
bool block_leave_to_graph(struct block *block, struct stream *stream);

/* Transfers to a graph a block that the program holds. block_serve_graph lets the graph reuse a
 * block that the program has freed. block_take_from_graph takes the block back once the graph is
 * destroyed and none of its work is pending. Each function returns false if the block is not in the
 * required state. */
bool block_give_graph(void *address);
bool block_serve_graph(void *address);
bool block_take_from_graph(void *address);

/* Returns a block for work that `stream` captures; `capture` is the capture's number (0: unknown).
 * The block was freed in the same capture, or is new from HIP. The capture must permit hipMalloc.
 * Returns NULL if there is no block; *error is HIP's answer. */
void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error);

/* ---- accounts ---- */

/* Records that the program gets a block by this call (sign 1), or frees a block (sign -1). */
static inline void block_tell(const struct block *block, int sign) {
    if (!block)
        return;
    const ptrdiff_t bytes = sign * (ptrdiff_t)block_size(block);
    call_tell_held(block_device(block), bytes);
    sites_count(block_address(block), block_device(block), bytes);
}

/* Returns the bytes held from HIP on a device, which the memory limit bounds. */
size_t block_reserved(int device);

/* Returns the ledger of a device: the reserved bytes and the blocks. */
struct memory_account block_ledger(int device);
/* Returns the ledger and the program's bytes; visits all blocks. */
struct memory_account block_account(int device);

extern const struct cache block_cache;

#endif
