/* The blocks of device memory that mgpuMemAlloc hands out: from HIP or from the pools to the
 * program, and back again.
 *
 * A block that is freed on a stream is free at once for the next work of that stream, as a stream
 * keeps its order. For work on other streams a block is free once its fences are done. Stock's
 * hipFree waits for the whole device, so it permits a free on a stream that does not come after all
 * work on the block. So a block also has a fence of each other stream that was at work when it was
 * freed.
 *
 * Sizes are rounded up to 256 bytes, and a block serves its exact size only. A block is never
 * split, so no smaller piece ever holds one back.
 *
 * A hit is one compare-and-swap when a block is taken and two when it is freed; no lock, no
 * allocation, no call of HIP. */
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

/* Returns the size of a block that the caller does not own: HIP may have handed its address out
 * again. */
static inline size_t block_size(const struct block *block) {
    return load_relaxed(&block->size);
}
static inline int block_device(const struct block *block) {
    return load_relaxed(&block->device);
}

/* Moves a block from one state to another. Returns true if the block was in state `from`, and is in
 * state `to` now.
 */
static inline bool block_change(struct block *block, int from, int to) {
    return block && cas_acq_rel(&block->state, &from, to);
}

static inline bool block_held_by_program(const struct block *block) {
    return load_acquire(&block->state) >= BLOCK_LIVE;
}

/* Returns a stream whose order a block may rely on: a block that is freed on it is free for its
 * next work. Returns NULL if the handle belongs to no such stream. */
static inline struct stream *block_order(const struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(stream && PROOF(order_is_of_a_live_stream, stream_is_live(stream)) &&
                  stream->device < MOST_DEVICES)
               ? stream
               : NULL;
}

/* Returns the entry of an address, or NULL. Lock-free. */
struct block *block_find(const void *address);
/* Returns the block that an address lies in, begin included, if it is not GONE. */
struct block *block_around(const void *address);

/* Returns the newest entry; handle_next returns the next. */
struct block *block_first(void);

/* Adds memory that hipMalloc (LIVE or GRAPH) or hipMallocManaged (SHARED) has returned. Returns
 * NULL without memory for the entry. */
struct block *block_insert(void *address, size_t size, int device, int state);

/* ---- allocating ---- */

/* Returns whether memory of this size goes to a pool when it is freed; if not, HIP allocates and
 * frees it. */
bool block_serves(uint64_t bytes, int device);

/* The block that the program is given, or NULL; *error is HIP's answer. */
struct block_allocated {
    void *address;
    enum call_how how;
    hipError_t error;
};

/* Hands out a block that the caller took from a pool. */
static inline void block_hand_out(struct block *block, int state) {
    store_relaxed(&block->uses, block->uses + 1);
    PROOF_STEP(block_handed_out_is_held, store_release(&block->state, state));
}

/* Puts an idle block that has its fences into a pool. */
void block_pool_put(struct block *block);

/* Takes a block of this size out of a way of a pool: the caller owns it. Returns NULL if there is
 * none. */
static inline struct block *block_pool_take_way(struct block **way, size_t size) {
    struct block *block = load_acquire(way);
    if (!block || block_size(block) != size || !cas_acq_rel(way, &block, NULL))
        return NULL;
    if (UNLIKELY(block->size != size)) { /* the block was freed and came back as another one */
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

/* Returns the hit: an idle block of the thread's current device, from the pool of a stream of that
 * device, for the stream's next work. Returns NULL if there is no such block, or no stream. */
static inline struct block *block_reuse(uint64_t bytes, int device, struct stream *order) {
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(device));
    struct block_pool *own =
        LIKELY(order && order->device == device) ? load_acquire(&order->pool) : NULL;
    struct block *block = LIKELY(own) ? block_pool_take_own(own, block_round(bytes)) : NULL;
    if (LIKELY(block))
        block_hand_out(block, BLOCK_LIVE);
    return block;
}

/* Allocates after block_reuse found nothing: a ready block of any pool, else one of HIP's. The
 * block is for work in the order of a stream of the device; NULL stands for any order. A shared
 * block is managed memory, which host and device see at once. The host may write to it at once, so
 * it is handed out again only after all work on it, and has no stream. */
struct block_allocated block_search(uint64_t bytes, int device, struct stream *order, bool shared);

/* Allocates on the calling thread's device, for work in any order. */
struct block_allocated block_allocate(uint64_t bytes, int device);

/* ---- freeing ---- */

/* The outcome of a free, and HIP's answer. */
struct block_freed {
    enum block_verdict {
        FREE_DONE,   /* the block is in a pool, or a graph has it */
        FREE_WAITED, /* the device was waited for; then it is in a pool, or HIP was given it */
        FREE_TO_HIP, /* HIP was given the address */
        FREE_TWICE,  /* nothing: the program has freed it before */
    } verdict;
    hipError_t error;
};

/* Frees what lies at an address, as mgpuMemFree does. The block was in use on `stream` (NULL:
 * anywhere). */
struct block_freed block_free(void *address, struct stream *stream);

/* Puts a block that the caller has just made IDLE, and that no work uses, into a pool. */
void block_put_done(struct block *block);

/* ---- for graphs ---- */

/* Leaves a block to a graph that goes on to use it: no other caller gets it. The program frees the
 * block on a stream (NULL: not known). Returns false if the program does not hold the block. */
bool block_leave_to_graph(struct block *block, struct stream *stream);

/* Gives a block that the program holds to a graph from now on. The second function lets a block
 * that the program has freed serve the graph again. The third takes the block back once the graph
 * is gone and none of its work is pending. Each returns false if the block is not in that state. */
bool block_give_graph(void *address);
bool block_serve_graph(void *address);
bool block_take_from_graph(void *address);

/* Returns a block for work that `stream` captures, in the capture of that number (0: not known).
 * The block was freed in that capture, or is new from HIP. The capture must permit hipMalloc.
 * Returns NULL if there is no block; *error is HIP's answer. */
void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error);

/* ---- accounts ---- */

/* Notes that the program gets a block by this call (1), or loses it (-1). */
static inline void block_tell(const struct block *block, int sign) {
    if (!block)
        return;
    const ptrdiff_t bytes = sign * (ptrdiff_t)block_size(block);
    call_tell_held(block_device(block), bytes);
    sites_count(block_address(block), block_device(block), bytes);
}

/* Returns the bytes held from HIP on a device, which the limit is about. */
size_t block_reserved(int device);

/* Returns the ledger of a device: what is reserved, and the blocks. */
struct memory_account block_ledger(int device);
/* Returns the ledger with what the program holds, for which it looks at all blocks. */
struct memory_account block_account(int device);

extern const struct cache block_cache;

#endif
