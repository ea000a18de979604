/* Allocates and frees blocks. */
#include "memory/blocks.h"
#include "driver/device.h"
#include "memory/block_requests.h"
#include "memory/eviction.h"
#include "memory/miss_reason.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"

/* ---- a reset ---- */

/* Removes the blocks of a device that was reset, or all blocks when HIP ends. */
static void invalidate_blocks(int device) {
    pthread_mutex_lock(&tables_lock);
    if (device != ALL_DEVICES)
        PROOF_STEP(shared_block_outlives_the_reset, eviction_note_survivors(device));
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        if (!PROOF(reset_ends_its_own_blocks, of_device(device, block->device)))
            continue;
        (void)block_unlink(block);
        PROOF_STEP(reset_ends_blocks, block_remove(block));
    }
    pthread_mutex_unlock(&tables_lock);
    ranges_change();
}

/* ---- allocating ---- */

bool block_serves(uint64_t bytes, int device) {
    return cache_is_on(CACHE_MEMORY) && bytes != 0 && bytes <= SIZE_MAX / 2 &&
           device_has_caches(device);
}

/* Returns true if an idle large block may have more than `size` bytes. The misses of a program that
 * keeps its memory, or has only small blocks, then visit no pool for a larger block. */
static bool larger_may_be_idle(size_t size, int device) {
    if (!block_large_bytes(device))
        return false;
    pthread_mutex_lock(&tables_lock);
    const size_t unused = block_large_unused(device);
    pthread_mutex_unlock(&tables_lock);
    return unused > size;
}

struct block_allocated block_search(uint64_t bytes, int device, struct stream *order, bool shared) {
    struct block_allocated made = {NULL, CALL_MISS, hipSuccess};
    const bool serves = block_serves(bytes, device);
    const size_t size = serves ? block_class(bytes) : 0;
    bool waits = false;
    struct block *block = serves ? block_search_pools(size, device, order, shared, &waits) : NULL;
    if (serves && !block && larger_may_be_idle(size, device))
        block = block_search_larger(size, device, order, shared);
    if (block) {
        made.how = CALL_HIT;
        block_ask(block, bytes);
        block_hand_out(block, shared ? BLOCK_SHARED : BLOCK_LIVE);
        made.address = block_address(block);
    } else if (serves) {
        block_tell_miss(block_first(), size, device, waits);
        made.address = block_request(bytes, device, shared, waits, &made.error);
    } else {
        made.how = CALL_BYPASS;
        made.error = shared && bytes && cache_is_on(CACHE_MEMORY)
                         ? hip.MallocManaged(&made.address, bytes, hipMemAttachGlobal)
                         : hip.Malloc(&made.address, bytes);
    }
    if (DOUBT(device_has_no_managed_memory, shared && made.error == hipErrorNotSupported)) {
        PROOF_STEP(attempt_leaves_no_error, device_clear_error(made.error));
        return block_search(bytes, device, NULL, false);
    }
    if (shared && made.address)
        lazy_visible(1);
    return made;
}

struct block_allocated block_allocate(uint64_t bytes, int device) {
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(device));
    return block_search(bytes, device, NULL, false);
}

/* ---- freeing ---- */

/* Frees an address at which the program holds no block. The program may have got the memory from
 * HIP, or the address may be wrong. If the address lies inside a block, HIP 5.2.3 frees that block.
 */
static struct block_freed free_unheld(void *address) {
    struct block *around = block_around(address);
    const bool is_known = around && device_kept(around->device);
    const int state = is_known ? load_acquire(&around->state) : BLOCK_GONE;
    const bool is_start = state != BLOCK_GONE && block_address(around) == address;
    if (DOUBT(address_is_in_a_cached_block,
              is_start || state == BLOCK_IDLE || state == BLOCK_GRAPH_OWNED))
        return (struct block_freed){FREE_TWICE, hipSuccess};
    const bool shared = around && around->shared;
    int device;
    const bool waits = eviction_has_survivors() && device_of_memory(address, &device);
    const hipError_t error = block_free_by_hip(around, address);
    if (shared && error == hipSuccess)
        lazy_visible(-1);
    if (UNLIKELY(waits))
        eviction_of_survivors(PROOF_VALUE(freed_memory_is_of_the_device, device, ALL_DEVICES));
    return (struct block_freed){FREE_TO_HIP, error};
}

/* Continues block_free for an address that is not the address of a block in state BLOCK_LIVE.
 * Returns false if the free is complete; *freed is then its outcome. */
static __attribute__((noinline)) bool end_hold(struct block *block, void *address,
                                               struct block_freed *freed) {
    const int state = block ? load_acquire(&block->state) : BLOCK_GONE;
    if (state == BLOCK_GONE && runtime_leaves(block))
        return false;
    if (state == BLOCK_GRAPH && DOUBT(graph_has_lost_the_block, !block_is_still_there(block))) {
        *freed = (struct block_freed){FREE_TO_HIP, block_free_by_hip(block, address)};
        return false;
    }
    if (state == BLOCK_GRAPH && block_leave_to_graph(block, NULL))
        return false;
    if (DOUBT(graph_has_just_begun_or_ended, state == BLOCK_GRAPH || state == BLOCK_LIVE))
        return block_change(block, BLOCK_LIVE, BLOCK_IDLE) || end_hold(block, address, freed);
    if (block_change(block, BLOCK_SHARED, BLOCK_IDLE)) {
        lazy_visible(-1);
        return true;
    }
    *freed = free_unheld(address);
    return false;
}

void block_put_done(struct block *block) {
    const int device = block->device;
    block_clear_fences(block);
    block_pool_put(block); /* from here on another thread may take the block */
    eviction_after_free(block, device);
}

/* Waits for the device. Returns false if no pool may have the block: HIP refused to wait, so
 * nothing shows when the block is idle. */
static __attribute__((noinline)) bool wait_until_idle(struct block *block,
                                                      struct block_freed *freed) {
    freed->verdict = FREE_WAITED;
    freed->error =
        PROOF_VALUE(unordered_free_waits, stream_wait_for_device(block->device), hipSuccess);
    if (DOUBT(nothing_says_it_is_idle, freed->error != hipSuccess)) {
        device_clear_error(freed->error);
        return false;
    }
    block_device_is_idle(block);
    return true;
}

/* Waits for the device if no fence can show when the block is idle. The library sets no fence on
 * the null stream, on a destroyed or unknown stream, or on a stream of another device. If too many
 * blocks have several fences, block_free also waits for the device. */
struct block_freed block_free(void *address, struct stream *stream) {
    struct block *block = block_find(address);
    struct block_freed freed = {FREE_DONE, hipSuccess};
    int live = BLOCK_LIVE;
    if (UNLIKELY(!block ||
                 !PROOF(block_is_freed_once, cas_acq_rel(&block->state, &live, BLOCK_IDLE))) &&
        !end_hold(block, address, &freed))
        return freed;
    if (UNLIKELY(block->size > BLOCK_EXACT_UP_TO))
        block_unask(block);
    const int device = block->device;
    const bool in_order = LIKELY(stream && stream->device == device);
    const bool care = !in_order || load_relaxed(&care_of_frees);
    bool is_kept = LIKELY(exclusive_hip()) || block_is_still_there(block);
    if (UNLIKELY(!is_kept))
        fetch_add_relaxed(&counts.made.other_code, 1);
    else if (UNLIKELY(care) && DOUBT(block_serves_no_class, block->is_exact))
        is_kept = false;
    if (UNLIKELY(!is_kept))
        freed.verdict = FREE_TO_HIP;
    else if (UNLIKELY(!in_order) || UNLIKELY(!block_set_fences(block, stream, care)))
        is_kept = wait_until_idle(block, &freed);
    if (UNLIKELY(!is_kept)) {
        freed.error = block_free_by_hip(block, address);
        return freed;
    }
    block_pool_put(block); /* from here on another thread may take the block */
    if (UNLIKELY(care))
        eviction_after_free(block, device);
    return freed;
}

bool block_leave_to_graph(struct block *block, struct stream *stream) {
    int state = load_acquire(&block->state);
    if (state < BLOCK_LIVE)
        return false;
    block->fence.stream = stream; /* as long as the program holds the block, only the program's
                                   * thread writes this fence */
    if (state != BLOCK_GRAPH)
        block->graph = 0;
    if (!PROOF(block_is_kept_for_its_graph, cas_acq_rel(&block->state, &state, BLOCK_GRAPH_OWNED)))
        return false;
    if (state == BLOCK_SHARED)
        lazy_visible(-1);
    return true;
}

/* ---- for statistics and the manager ---- */

static size_t list_blocks(struct cached *out, size_t room) {
    size_t count = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block)) {
        const int state = load_acquire(&block->state);
        if (state == BLOCK_GONE)
            continue;
        if (count < room)
            out[count] =
                (struct cached){block_address(block), block_size(block), load_relaxed(&block->uses),
                                block_device(block), state != BLOCK_IDLE};
        count++;
    }
    return count;
}

const struct cache block_cache = {.trim = eviction_of_all,
                                  .invalidate = invalidate_blocks,
                                  .thread_ends = block_thread_ends,
                                  .list = list_blocks,
                                  .evict = eviction_of_block};
