/* Allocates and frees blocks, and asks HIP for new ones. */
#include "memory/blocks.h"
#include "driver/device.h"
#include "memory/eviction.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"

/* ---- a reset ---- */

/* Removes the blocks of a device that was reset, or all blocks in a forked child or at exit. */
static void invalidate_blocks(int device) {
    pthread_mutex_lock(&tables_lock);
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        if (!PROOF(reset_ends_its_own_blocks, of_device(device, block->device)))
            continue;
        (void)block_unlink(block);
        if (runtime_exiting())
            block_remove_at_exit(block);
        else
            PROOF_STEP(reset_ends_blocks, block_remove(block));
    }
    pthread_mutex_unlock(&tables_lock);
    ranges_change();
}

/* ---- new blocks ---- */

/* With LLVM 19 and later, LLVM's own library for CUDA allocates managed memory if host_shared is
 * set. With HIP, managed memory is pinned host memory if the device cannot move pages. hipFree
 * frees managed memory. Managed memory is coherent by default, so hipMallocManaged needs no flag
 * for that. On ROCm, a stock program gets device memory even if host_shared is set, and the host
 * may be unable to access this memory. */
static hipError_t ask_hip(void **address, size_t size, bool shared) {
    return shared ? hip.MallocManaged(address, size, hipMemAttachGlobal)
                  : hip.Malloc(address, size);
}

/* A request for a new block, and HIP's answer. */
struct request {
    void *address;
    size_t size;
    int device;
    bool shared;
    hipError_t error;
};

/* Asks HIP. Returns false if HIP has no memory. */
static bool request_once(struct request *request) {
    request->error = ask_hip(&request->address, request->size, request->shared);
    return request->error != hipErrorOutOfMemory;
}

/* Asks HIP again after hipErrorOutOfMemory, which the thread's last error does not show then. */
static bool request_again(struct request *request) {
    (void)hip.GetLastError();
    return request_once(request);
}

/* Returns how many bytes HIP lacks for a request of the current device. If HIP has as many, but not
 * in one piece, returns the request's size. */
static size_t missing_bytes(size_t size) {
    size_t available = 0, total = 0;
    const bool is_known = device_answered(hip.MemGetInfo(&available, &total));
    return is_known && available < size ? size - available : size;
}

/* Continues after HIP had no memory. First idle blocks of the device leave: as many as are missing,
 * and twice as many each time that HIP refuses. Then HIP gets the exact size, and then all
 * caches release their idle objects. HIP frees memory only by hipFree, which waits for the device.
 * Without this wait, an allocation would fail that succeeds with stock. AMD's HIP 5.2.3 has freed
 * memory only once it knows that the streams' earlier work is done. So the library asks about the
 * streams, and then for memory. */
static void request_harder(struct request *request, size_t exact) {
    const int device = request->device;
    (void)device_kept(device);
    limit_reached();
    for (size_t more = missing_bytes(request->size); eviction_of_bytes(device, more); more *= 2)
        if (request_again(request))
            return;
    if (request->size != exact) {
        request->size = exact;
        if (request_again(request))
            return;
    }
    if (DOUBT(allocation_may_succeed_with_room, caches_make_room(request->error)))
        (void)request_once(request);
    if (request->error == hipErrorOutOfMemory &&
        DOUBT(freed_memory_comes_late, stream_query_all(device)))
        (void)request_again(request);
    if (request->error == hipErrorOutOfMemory &&
        DOUBT(others_may_return_memory, neighbours.ask(device)))
        (void)request_again(request);
}

/* Returns how many more bytes the program's blocks may have beyond its requests. The limit and a
 * sixteenth of the device bound these bytes: otherwise a program that fills the device with stock
 * could lack memory. A hit does not ask, so hits may exceed the bound. */
static size_t room_beyond(int device) {
    const size_t known = cache_limits.memory_bytes[device];
    const size_t total = eviction_total(device) / 16;
    size_t limit = known ? known : options.memory_limit_bytes;
    if (total && total < limit)
        limit = total;
    if (!limit)
        return SIZE_MAX;
    pthread_mutex_lock(&tables_lock);
    const size_t beyond = block_beyond_bytes(device);
    pthread_mutex_unlock(&tables_lock);
    return beyond < limit ? limit - beyond : 0;
}

/* Returns the size for which the library asks HIP. */
static size_t size_for(int device, size_t bytes) {
    const size_t size = block_class(bytes), exact = block_round(bytes);
    return DOUBT(slack_exceeds_the_limit, size != exact && size - exact > room_beyond(device))
               ? exact
               : size;
}

/* The search looks at the newest blocks only, so a miss does not take longer with more blocks. */
enum { REASON_LOOKED_AT = 256 };

static bool is_other_size_idle(size_t size, int device) {
    const struct block *block = block_first();
    for (int looked = 0; block && looked < REASON_LOOKED_AT; block = handle_next(block), looked++)
        if (load_acquire(&block->state) == BLOCK_IDLE && block_device(block) == device &&
            block_size(block) != size)
            return true;
    return false;
}

/* Returns the counter for an allocation of which no block of this size waits. A block has gone if
 * it left the cache because of the limit, or because memory was short. Visits no block if nothing
 * is counted. */
static uint64_t *reason_of(size_t size, int device) {
    if (!stats_wanted())
        return &counts.made.first_use;
    if (block_may_have_gone(size, device))
        return &counts.made.limit;
    return is_other_size_idle(size, device) ? &counts.made.size : &counts.made.first_use;
}

/* Asks HIP for a block for a request of `bytes` bytes, and inserts it into the table, held by the
 * program. If HIP has no memory, idle blocks leave first, unless the request exceeds the device's
 * memory. The reason is found before these blocks leave. `waits` is what block_search_pools
 * returned. Returns NULL if HIP has no memory; *error is HIP's answer. The function does not ask
 * HIP for the size of the device's memory: a successful call would clear the error that the program
 * must see. */
static void *request_block(size_t bytes, int device, bool shared, bool waits, hipError_t *error) {
    const size_t total = eviction_total(device), exact = block_round(bytes);
    uint64_t *const reason = waits ? &counts.made.waits : reason_of(block_class(bytes), device);
    struct request request = {
        .size = size_for(device, bytes), .device = device, .shared = shared, .error = hipSuccess};
    if (UNLIKELY(!request_once(&request)) &&
        PROOF(device_can_have_so_much, !total || exact <= total) && caches_on())
        request_harder(&request, exact);
    *error = request.error;
    if (*error != hipSuccess)
        return NULL;
    const size_t size = request.size;
    stats_miss(CACHE_MEMORY);
    fetch_add_relaxed(reason, stats_wanted());
    device_watch(device);
    struct block *block =
        block_insert(request.address, size, bytes, device, shared ? BLOCK_SHARED : BLOCK_LIVE);
    if (block && !exclusive_hip()) /* without memory for an entry, `block` is NULL, and mgpuMemFree
                                    * calls hipFree */
        block_ask_number(block);
    block_expect_own(size, device);
    eviction_after_new(device, size, waits);
    return request.address;
}

/* ---- allocating ---- */

bool block_serves(uint64_t bytes, int device) {
    return cache_is_on(CACHE_MEMORY) && bytes != 0 && bytes <= SIZE_MAX / 2 &&
           device_has_caches(device);
}

/* Returns true if an idle large block may have more than `size` bytes. The misses of a program that
 * keeps its memory, or has only small blocks, then visit no pool for a larger block. */
static bool larger_may_be_idle(size_t size, int device) {
    if (!load_relaxed(&block_large_bytes[device]))
        return false;
    pthread_mutex_lock(&tables_lock);
    const size_t unused = block_large_unused(device);
    pthread_mutex_unlock(&tables_lock);
    return unused > size;
}

void *block_search(uint64_t bytes, int device, struct stream *order, bool shared,
                   hipError_t *error) {
    void *address = NULL;
    const bool serves = block_serves(bytes, device);
    const size_t size = serves ? block_class(bytes) : 0;
    bool waits = false;
    struct block *block =
        serves ? block_search_pools(block_round(bytes), device, order, shared, &waits) : NULL;
    if (serves && !block && larger_may_be_idle(size, device))
        block = block_search_larger(size, room_beyond(device), device, order, shared);
    if (block) {
        *error = hipSuccess;
        call_tell(CALL_HIT);
        block_ask(block, bytes);
        block_hand_out(block, shared ? BLOCK_SHARED : BLOCK_LIVE);
        address = block_address(block);
    } else if (serves) {
        address = request_block(bytes, device, shared, waits, error);
    } else {
        const bool managed = caches_on() ? bytes && cache_is_on(CACHE_MEMORY) : cuda_present();
        call_tell(CALL_BYPASS);
        *error = ask_hip(&address, bytes, shared && managed);
    }
    if (caches_on() &&
        DOUBT(device_has_no_managed_memory, shared && *error == hipErrorNotSupported)) {
        PROOF_STEP(attempt_leaves_no_error, device_clear_error(*error));
        return block_search(bytes, device, NULL, false, error);
    }
    if (shared && address)
        lazy_visible(1);
    return address;
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
    const hipError_t error = block_free_by_hip(around, address);
    if (shared && error == hipSuccess)
        lazy_visible(-1);
    return (struct block_freed){FREE_TO_HIP, error};
}

/* Waits for the device. Returns false if no pool may have the block: HIP refused to wait, so
 * nothing shows when the block is idle. */
static __attribute__((noinline)) bool wait_until_idle(struct block *block) {
    const hipError_t error =
        PROOF_VALUE(unordered_free_waits, stream_wait_for_device(block->device), hipSuccess);
    if (DOUBT(nothing_says_it_is_idle, error != hipSuccess)) {
        device_clear_error(error);
        return false;
    }
    block_device_is_idle(block);
    return true;
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
    if (state == BLOCK_GRAPH) {
        /* The graph may write the block at its next launch, and the block has no fence. */
        PROOF_STEP(freed_block_of_a_graph_is_idle, (void)wait_until_idle(block));
        if (block_leave_to_graph(block, NULL))
            return false;
    }
    if (DOUBT(graph_has_just_begun_or_ended, state == BLOCK_GRAPH || state == BLOCK_LIVE))
        return block_change(block, BLOCK_LIVE, BLOCK_IDLE) || end_hold(block, address, freed);
    if (block_change(block, BLOCK_SHARED, BLOCK_IDLE)) {
        lazy_visible(-1);
        return true;
    }
    *freed = free_unheld(address);
    return false;
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
    const unsigned care = load_relaxed(&care_of_frees);
    bool is_kept = LIKELY(exclusive_hip()) || block_is_still_there(block);
    if (UNLIKELY(!is_kept)) {
        fetch_add_relaxed(&counts.made.other_code, 1);
        freed.verdict = FREE_TO_HIP;
    } else if (UNLIKELY(!in_order) ||
               UNLIKELY(!block_set_fences(block, stream, care & CARE_SEVERAL_STREAMS))) {
        is_kept = wait_until_idle(block);
    }
    if (LIKELY(is_kept)) {
        block_pool_put(block); /* from here on another thread may take the block */
        if (UNLIKELY(care & (CARE_OF_BOUNDS | CARE_WANTED)))
            eviction_after_free(block, device);
    } else {
        freed.error = block_free_by_hip(block, address);
    }
    return freed;
}

bool block_leave_to_graph(struct block *block, struct stream *stream) {
    int state = load_acquire(&block->state);
    if (state < BLOCK_LIVE)
        return false;
    block->fence.stream = stream; /* as long as the program holds the block, only the program's
                                   * thread writes this fence */
    if (state != BLOCK_GRAPH)
        store_relaxed(&block->graph, 0);
    if (!PROOF(block_is_kept_for_its_graph, cas_acq_rel(&block->state, &state, BLOCK_GRAPH_OWNED)))
        return false;
    if (state == BLOCK_SHARED)
        lazy_visible(-1);
    return true;
}

/* ---- for statistics and the manager ---- */

static bool describe_block(const void *entry, struct cached *out) {
    const struct block *block = entry;
    const int state = load_acquire(&block->state);
    *out = (struct cached){block_address(block), block_size(block), load_relaxed(&block->uses),
                           block_device(block), state != BLOCK_IDLE};
    return state != BLOCK_GONE;
}

const struct cache block_cache = {.trim = eviction_of_all,
                                  .invalidate = invalidate_blocks,
                                  .thread_ends = block_thread_ends,
                                  .describe = describe_block,
                                  .map = &block_map,
                                  .evict = eviction_of_block};
