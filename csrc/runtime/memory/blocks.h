/* Manages the blocks of device memory that mgpuMemAlloc returns. A new block comes from HIP, a
 * reused block from a pool, and a freed block enters a pool.
 *
 * A stream runs its work in order. So when the program has freed a block on a stream, the stream's
 * next work may use the block at once. Work on other streams may use a block once the block's
 * fences are done. With stock, hipFree waits for the whole device, so a program may free a block
 * that any stream still uses. So a block has a fence for each stream that had pending work when the
 * program freed the block.
 *
 * Above 64 KiB sizes are rounded up to an eighth of a power of two (sizes.h), and a hit serves only
 * that size. If an allocation finds no idle block of its size, it may take a block up to twice as
 * large. The library never splits a block, so no small piece in use keeps a large block from
 * reuse.
 *
 * A hit allocates a block with one compare-and-swap, and the free of the block takes two. A hit
 * takes no lock, allocates no host memory and does not call HIP. */
#ifndef MGPU_RT_BLOCKS_H
#define MGPU_RT_BLOCKS_H

#include "atomics.h"
#include "check.h"
#include "likely.h"
#include "memory/sizes.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/handles.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "streams/streams.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"

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

/* Returns the stream of a handle: the stream's next work may use a block that was freed on this
 * stream. Returns NULL for the null stream, and if the stream is unknown or destroyed. */
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

/* Returns the newest entry; handle_next returns the next older entry. */
struct block *block_first(void);

/* Adds memory of `size` bytes that HIP has just allocated for a request of `bytes` bytes. The state
 * is LIVE or GRAPH for memory of hipMalloc, and SHARED for memory of hipMallocManaged. Returns NULL
 * if there is no memory for the entry. */
struct block *block_insert(void *address, size_t size, size_t bytes, int device, int state);

/* ---- the bytes for which the program asked ---- */

/* True once the program held a block that is larger than its request. */
extern bool blocks_have_slack;

/* Changes how many bytes of large blocks the program holds on a device. Each thread has its own
 * count, so that threads share no cache line. */
void block_count_apart(int device, ptrdiff_t bytes);
static inline void block_count(int device, ptrdiff_t bytes) {
    struct thread *thread = thread_self;
    if (LIKELY(thread != NULL))
        store_relaxed(&thread->asked[device], load_relaxed(&thread->asked[device]) + bytes);
    else
        block_count_apart(device, bytes);
}

/* Records the bytes for which the program asked, in a block that the caller owns. */
static inline void block_ask(struct block *block, size_t bytes) {
    if (block->size <= BLOCK_EXACT_UP_TO)
        return;
    PROOF_STEP(slack_is_not_the_programs, range_use(&block->range, bytes));
    if (bytes != block->size && UNLIKELY(!load_relaxed(&blocks_have_slack)))
        store_relaxed(&blocks_have_slack, true);
    block_count(block->device, (ptrdiff_t)bytes);
}

/* Subtracts the bytes of a block that the program no longer holds. */
static inline void block_unask(const struct block *block) {
    if (block->size > BLOCK_EXACT_UP_TO)
        block_count(block->device, -(ptrdiff_t)block_asked(block));
}

/* Changes the bytes for which the program asked, of a block that it holds. */
static inline void block_ask_again(struct block *block, size_t bytes) {
    block_unask(block);
    block_ask(block, bytes);
}

/* Returns how many bytes HIP must get to answer as with a block of exactly the requested size. If
 * `bytes` lead beyond the request, the result leads beyond the block. */
static inline size_t block_past(const void *address, size_t bytes) {
    return LIKELY(!load_relaxed(&blocks_have_slack)) ? bytes : ranges_past(address, bytes);
}

/* ---- allocating ---- */

/* Returns true if the pools serve memory of this size. If not, HIP allocates and frees the memory.
 */
bool block_serves(uint64_t bytes, int device);

/* the address of the program's block, or NULL, and HIP's answer */
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

/* Puts an idle block into a pool; the block keeps its fences. */
void block_pool_put(struct block *block);

/* Removes the block from one slot of a pool, if the block has this size. The caller then owns the
 * block. Returns NULL if the slot has no block of this size. */
static inline struct block *block_pool_take_way(struct block **way, size_t size) {
    struct block *block = load_acquire(way);
    if (!block || block_size(block) != size || !cas_acq_rel(way, &block, NULL))
        return NULL;
    if (UNLIKELY(block->size != size)) { /* another thread has reused the entry for a block of
                                          * another size */
        block_pool_put(block);
        return NULL;
    }
    CHECK(load_relaxed(&block->state) == BLOCK_IDLE || load_relaxed(&block->state) == BLOCK_GONE);
    return block;
}

/* Removes a block of this size from a stream's pool. The stream's next work may use any block of
 * the pool. */
static inline struct block *block_pool_take_own(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    struct block *block = NULL;
    for (int way = 0; way < POOL_WAYS && !block; way++)
        block = block_pool_take_way(&ways[way], size);
    return block;
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
 * library reuses a shared block only when no pending work uses the block. */
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

/* Puts a block into a pool. The caller has just made the block IDLE, and no pending work uses the
 * block. */
void block_put_done(struct block *block);

/* ---- for graphs ---- */

/* Frees a block that a graph still uses: only the graph may use the block from now on. `stream` is
 * the stream on which the program frees the block; NULL: unknown. Returns false if the program does
 * not hold the block. */
bool block_leave_to_graph(struct block *block, struct stream *stream);

/* Transfers to a graph a block that the program holds. block_serve_graph lets the graph reuse a
 * block that the program has freed. block_take_from_graph takes the block back once the graph is
 * destroyed and none of its work is pending. Each function returns false if the block is not in the
 * required state. */
bool block_give_graph(void *address);
bool block_serve_graph(void *address, uint64_t bytes);
bool block_take_from_graph(void *address);

/* Returns a block for work that `stream` captures; `graph` is the capture's number (0: unknown).
 * The program has freed the block in the same capture, or HIP has just allocated the block. The
 * capture must permit hipMalloc. Returns NULL if there is no block; *error is HIP's answer. */
void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error);

/* ---- accounts ---- */

/* Records, for the statistics of this call, that the program gets a block (sign 1) or frees a block
 * (sign -1). */
static inline void block_tell(const struct block *block, int sign) {
    if (!block)
        return;
    const ptrdiff_t bytes = sign * (ptrdiff_t)block_asked(block);
    call_tell_held(block_device(block), bytes);
}

/* Returns how many bytes HIP has allocated for the library's blocks on a device. */
size_t block_reserved(int device);

/* Returns a device's ledger, which counts the reserved bytes and the blocks. */
struct memory_account block_ledger(int device);
/* Returns the ledger and the program's bytes; visits all blocks. */
struct memory_account block_account(int device);

extern const struct cache block_cache;

#endif
