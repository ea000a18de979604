/* Manages the blocks of device memory that mgpuMemAlloc returns. A new block comes from HIP, a
 * reused block from a pool, and a freed block enters a pool.
 *
 * A stream runs its work in order. So when the program has freed a block on a stream, the stream's
 * next work may use the block at once. Work on other streams may use a block once the block's
 * fences are done. With stock, hipFree waits for the whole device, so a program may free a block
 * that any stream still uses. So a block has a fence for each stream that had pending work when the
 * program freed the block.
 *
 * Above 64 KiB sizes are rounded up to an eighth of a power of two (block.h), and a hit serves only
 * that size. If an allocation finds no idle block of its size, it may take a larger block. The
 * library never splits a block, so no small piece in use keeps a large block from reuse.
 *
 * A hit allocates a block with one compare-and-swap, and the free of the block takes two. A hit
 * takes no lock, allocates no host memory and does not call HIP. */
#ifndef MGPU_RT_BLOCKS_H
#define MGPU_RT_BLOCKS_H

#include "memory/block_pools.h"
#include "memory/block_table.h"
#include "streams/streams.h"
#include "telemetry/counters.h"

/* Returns the stream of a handle: the stream's next work may use a block that was freed on this
 * stream. Returns NULL for the null stream, and if the stream is unknown or destroyed. */
static inline struct stream *block_order(const struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(stream && PROOF(order_is_of_a_live_stream, stream_is_live(stream)) &&
                  stream->device < MOST_DEVICES)
               ? stream
               : NULL;
}

/* ---- allocating ---- */

/* Returns true if the pools serve memory of this size. If not, HIP allocates and frees the memory.
 */
bool block_serves(uint64_t bytes, int device);

/* Hands out a block that the caller removed from a pool. */
static inline void block_hand_out(struct block *block, int state) {
    store_relaxed(&block->uses, block->uses + 1);
    PROOF_STEP(block_handed_out_is_held, store_release(&block->state, state));
}

/* Returns a block from the pool of the stream `order`, for this stream's next work. Returns NULL if
 * the pool has no block of this size. Also returns NULL if `order` is NULL or a stream of another
 * device. */
static inline struct block *block_reuse(uint64_t bytes, int device, struct stream *order) {
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(device));
    struct block_pool *own =
        LIKELY(order && order->device == device) ? load_acquire(&order->pool) : NULL;
    struct block *block = LIKELY(own) ? block_pool_take_own(own, block_class(bytes)) : NULL;
    if (LIKELY(block)) {
        block_ask(block, bytes);
        block_hand_out(block, BLOCK_LIVE);
    }
    return block;
}

/* Allocates after block_reuse found no block: returns a ready block from any pool, otherwise a new
 * block from HIP. The block is ready for the next work of `order`, which must be a stream of the
 * device. If `order` is NULL, the block is ready for work on any stream. A shared block is managed
 * memory, which host and device both see. The host may write to a shared block at once. So the
 * library reuses a shared block only when no pending work uses the block. Returns NULL if there is
 * no block; *error is HIP's answer. */
void *block_search(uint64_t bytes, int device, struct stream *order, bool shared,
                   hipError_t *error);

/* ---- freeing ---- */

/* The outcome of a free, and HIP's answer. */
struct block_freed {
    enum block_verdict {
        FREE_DONE,   /* the block is in a pool, a graph owns it, or HIP freed it after a wait */
        FREE_TO_HIP, /* HIP freed the address */
        FREE_TWICE,  /* nothing was freed: the program has freed the address before */
    } verdict;
    hipError_t error;
};

/* Frees the memory at an address, as mgpuMemFree does. `stream` is the stream that used the block
 * (NULL: any stream may have used it). */
struct block_freed block_free(void *address, struct stream *stream);

/* ---- for graphs ---- */

/* Frees a block that a graph still uses: only the graph may use the block from now on. `stream` is
 * the stream on which the program frees the block; NULL: unknown. Returns false if the program does
 * not hold the block. */
bool block_leave_to_graph(struct block *block, struct stream *stream);

/* Transfers to a graph a block that the program holds. `graph` is a number that no other graph has.
 * Returns false if the program does not hold the block. */
bool block_give_graph(void *address, uint64_t graph);

/* Returns a block for these bytes, at most of their class, that the graph owns, and that the
 * program has freed on `stream` (NULL: unknown). The program then holds the block again. Returns
 * NULL if there is no such block.
 */
void *block_serve_graph(uint64_t bytes, int device, const struct stream *stream, uint64_t graph);

/* Takes all blocks back once the graph is destroyed and none of its work is pending. Returns false
 * if the graph has no block. */
bool block_take_from_graph(uint64_t graph);

/* Returns a block for work that `stream` captures; `graph` is the capture's number (0: unknown).
 * The program has freed the block in the same capture, or HIP has just allocated the block. The
 * capture must permit hipMalloc. Returns NULL if there is no block; *error is HIP's answer. */
void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error);

extern const struct cache block_cache;

#endif
