/* The life of a block. This file decides whether a free keeps a block, and which blocks leave for
 * the limit. The pools know where a block lies in between, and the table which entry it has. */
#include "memory/blocks.h"
#include "atomics.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "memory/blocks_table.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/limits.h"
#include "shared/ranges.h"
#include "shared/reset.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"
#include "telemetry/observe.h"

enum { USES_BITS = 8, MOST_USES = (1 << USES_BITS) - 1 };

static const char free_expression[] = "hipFree(ptr)";

/* ---- the limit ----
 *
 * It bounds what is kept although the program has freed it. So it is kept to where blocks are
 * freed: stock's hipFree, too, waits for the device there. An allocation gives nothing back unless
 * HIP has no memory.
 *
 * As long as a device holds no more from HIP than the limit there is nothing to count. Beyond it
 * each free is added up. When the sum reaches the limit, the library looks at all blocks. The least
 * recently used leave until seven eighths of the limit are kept, so an eighth is freed before the
 * next look. */

static size_t
    freed[MOST_DEVICES]; /* no less than what is kept, where the device is over its limit */

static size_t totals[MOST_DEVICES]; /* bytes of its memory; 0: not known */

static size_t limit_of(int device) {
    size_t limit = cache_limits.memory_bytes[device];
    if (limit)
        return limit;
    size_t available = 0, total = 0;
    (void)device_answered(hip.MemGetInfo(&available, &total));
    store_relaxed(&totals[device], total);
    limit = options.memory_limit_bytes;
    if (!limit)
        limit = (size_t)((double)total * options.memory_limit_fraction);
    limit = limit ? limit : 1;
    cache_limits.memory_bytes[device] = limit;
    return limit;
}

/* ---- giving back ---- */

static bool give_block_back(struct block *block) {
    if (!block_retire(block))
        return false;
    stats_eviction(CACHE_MEMORY);
    REPORT(free_expression, block_free_by_hip(block, block_address(block)), NULL);
    return true;
}

static bool is_idle_on(int device, const struct block *block) {
    return load_acquire(&block->state) == BLOCK_IDLE && of_device(device, block_device(block));
}

/* Orders blocks by their last free, and those that were freed since one miss by their uses. */
static uint64_t rank_of(const struct block *block) {
    const uint64_t uses = load_relaxed(&block->uses);
    return load_relaxed(&block->last_use) << USES_BITS |
           (uses < MOST_USES ? uses : (uint64_t)MOST_USES);
}

/* The bytes of the idle blocks above a rank. */
static size_t bytes_above(int device, uint64_t rank) {
    size_t bytes = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block))
        if (is_idle_on(device, block) && rank_of(block) > rank)
            bytes += block_size(block);
    return bytes;
}

/* Gives back the idle blocks up to a rank, but so many of that rank as `most` bytes hold. Returns
 * how many go. hipFree waits for the device, so a block whose stream is still at work may go
 * too. */
static int give_back_up_to(int device, uint64_t rank, size_t most) {
    int count = 0;
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        const uint64_t own = rank_of(block);
        const size_t size = block_size(block);
        if (!is_idle_on(device, block) || own > rank)
            continue;
        if (own == rank && size <= most)
            most -= size;
        else
            count += give_block_back(block);
    }
    return count;
}

static int give_blocks_back(int device) {
    return give_back_up_to(device, UINT64_MAX, 0);
}

/* Gives back the least recently used blocks until no more than `most` bytes are kept; returns how
 * many are. Halves the ranks until the one is found above which so much is kept. */
static size_t give_oldest_back(int device, size_t most) {
    uint64_t rank = 0, end = (load_relaxed(&block_clock) + 1) << USES_BITS;
    while (rank < end) {
        const uint64_t middle = rank + (end - rank) / 2;
        if (bytes_above(device, middle) > most)
            rank = middle + 1;
        else
            end = middle;
    }
    const size_t above = bytes_above(device, rank);
    (void)give_back_up_to(device, rank, above < most ? most - above : 0);
    return bytes_above(device, 0);
}

/* A block of this size was freed and kept. */
static __attribute__((noinline)) void keep_to_limit(int device, size_t size) {
    const size_t limit = cache_limits.memory_bytes[device];
    if (!limit || block_reserved(device) <= limit)
        return;
    fetch_add_relaxed(&block_clock, 1); /* from here on the order of frees matters */
    if (add_fetch_relaxed(&freed[device], size) <= limit || !device_kept(device))
        return;
    PROOF_STEP(blocks_beyond_the_limit_leave,
               store_relaxed(&freed[device], give_oldest_back(device, limit - limit / 8)));
}

/* HIP was asked for more: from here on frees are added up, if the device is over its limit now. */
static void note_reserved(int device, size_t size) {
    const size_t limit = limit_of(device), now = block_reserved(device);
    if (now <= limit)
        return;
    if (now - size <= limit)
        PROOF_STEP(earlier_frees_count, store_relaxed(&freed[device], limit));
    fetch_or_relaxed(&care_of_frees, CARE_OVER_LIMIT);
}

size_t block_held(size_t *bytes) {
    size_t count = 0;
    *bytes = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block)) {
        if (!block_held_by_program(block))
            continue;
        count++;
        *bytes += block_size(block);
    }
    return count;
}

/* ---- allocating ---- */

bool block_serves(uint64_t bytes, int device) {
    return cache_is_on(CACHE_MEMORY) && bytes != 0 && bytes <= SIZE_MAX - BLOCK_GRAIN &&
           device < MOST_DEVICES;
}

/* LLVM's own library for CUDA has had managed memory for host_shared since 19. HIP has it for every
 * device (pinned host memory where pages cannot move). hipFree takes it back, and it is coherent
 * without a flag. Stock ROCm hands out device memory there, which the host may not be able to
 * touch. */
static hipError_t ask_hip(void **address, size_t size, bool shared) {
    return shared ? hip.MallocManaged(address, size, hipMemAttachGlobal)
                  : hip.Malloc(address, size);
}

/* For what no device of this size can have nothing is given back. HIP is not asked: a call that
 * succeeds would clear the error that the program is to meet. */
static bool fits_device(size_t size, int device) {
    const size_t total = load_relaxed(&totals[device]);
    return PROOF(device_can_have_so_much, !total || size <= total);
}

static void *allocate_new(size_t size, int device, bool shared, hipError_t *error) {
    void *address = NULL;
    *error = ask_hip(&address, size, shared);
    if (UNLIKELY(*error != hipSuccess) && fits_device(size, device) &&
        DOUBT(allocation_may_succeed_with_room, caches_make_room(*error)))
        *error = ask_hip(&address, size, shared);
    if (*error != hipSuccess)
        return NULL;
    stats_miss(CACHE_MEMORY);
    device_watch(device);
    const bool entered = block_enter(address, size, device, shared ? BLOCK_SHARED : BLOCK_LIVE);
    if (entered && shared && !exclusive_hip()) /* without memory for the entry: freed by hipFree */
        block_note_number(block_find(address));
    observe(OBSERVED_BLOCK_ALLOCATED, address, size, device);
    note_reserved(device, size);
    return address;
}

/* Hands out a block that was kept; the caller owns it. */
static inline struct block_allocated hand_out(struct block *block, int state) {
    block_note_use(block);
    PROOF_STEP(block_handed_out_is_held, store_release(&block->state, state));
    return (struct block_allocated){block_address(block), CALL_HIT, hipSuccess};
}

/* Finds a ready block, else asks HIP for one. */
static __attribute__((noinline)) struct block_allocated
allocate_slow(uint64_t bytes, int device, struct stream *order, bool shared) {
    struct block_allocated made = {NULL, CALL_MISS, hipSuccess};
    if (!block_serves(bytes, device)) {
        made.how = CALL_BYPASS;
        made.error = hip.Malloc(&made.address, bytes);
        return made;
    }
    const size_t size = block_round(bytes);
    struct block *block = block_pool_search(device, size, order, shared);
    if (block)
        made = hand_out(block, shared ? BLOCK_SHARED : BLOCK_LIVE);
    else
        made.address = allocate_new(size, device, shared, &made.error);
    if (DOUBT(device_has_no_managed_memory, shared && made.error == hipErrorNotSupported)) {
        PROOF_STEP(attempt_leaves_no_error, device_forget_error(made.error));
        return block_allocate(bytes, device, NULL, false);
    }
    if (shared && made.address)
        lazy_visible(1);
    return made;
}

struct block_allocated block_allocate(uint64_t bytes, int device, struct stream *stream,
                                      bool shared) {
    struct stream *order = LIKELY(stream && stream->device == device) ? stream : NULL;
    PROOF_STEP(reset_before_block_reuse, (void)device_kept(device));
    struct block_pool *own = LIKELY(order) ? load_acquire(&order->pool) : NULL;
    struct block *block = LIKELY(own) ? block_pool_take_own(own, block_round(bytes)) : NULL;
    return LIKELY(block) ? hand_out(block, BLOCK_LIVE)
                         : allocate_slow(bytes, device, order, shared);
}

/* ---- freeing ---- */

static bool change_block(struct block *block, int from, int to) {
    return block && cas_acq_rel(&block->state, &from, to);
}

/* Frees an address where the program holds no block: memory that it got by HIP, or a mistake. HIP
 * 5.2.3 takes an address inside a block for the block. */
static struct block_freed free_unheld(void *address) {
    struct block *around = block_around(address);
    const bool is_known = around && device_kept(around->device);
    const int state = is_known ? load_acquire(&around->state) : BLOCK_GONE;
    const bool is_start = state != BLOCK_GONE && block_address(around) == address;
    if (DOUBT(address_is_in_a_cached_block,
              is_start || state == BLOCK_IDLE || state == BLOCK_GRAPH_OWNED))
        return (struct block_freed){FREE_TWICE, hipSuccess};
    ranges_drop(address); /* before HIP can hand it out again */
    if (!around)
        return (struct block_freed){FREE_TO_HIP, hip.Free(address)};
    const bool shared = around->shared;
    const hipError_t error = block_free_by_hip(around, address);
    if (shared && error == hipSuccess)
        lazy_visible(-1);
    return (struct block_freed){FREE_TO_HIP, error};
}

/* Ends the program's hold of a block that is not BLOCK_LIVE. False if the free ends here; then
 * *freed is its outcome. */
static __attribute__((noinline)) bool end_hold(struct block *block, void *address,
                                               struct block_freed *freed) {
    const int state = block ? load_acquire(&block->state) : BLOCK_GONE;
    if (state == BLOCK_GONE && runtime_leaves(block))
        return false;
    if (state == BLOCK_GRAPH && block_leave_to_graph(block, NULL))
        return false;
    if (DOUBT(graph_has_just_begun_or_ended, state == BLOCK_GRAPH || state == BLOCK_LIVE))
        return change_block(block, BLOCK_LIVE, BLOCK_IDLE) || end_hold(block, address, freed);
    if (change_block(block, BLOCK_SHARED, BLOCK_IDLE)) {
        lazy_visible(-1);
        return true;
    }
    *freed = free_unheld(address);
    return false;
}

/* Waits for the device, as no fence says when the block is idle. The program named the null stream,
 * one that is gone, one of another device, or one of its own that the table does not know. Or too
 * many blocks have several fences. */
static __attribute__((noinline)) struct block_freed free_after_waiting(struct block *block) {
    const hipError_t error =
        PROOF_VALUE(unordered_free_waits, stream_wait_for_device(block->device), hipSuccess);
    if (UNLIKELY(DOUBT(nothing_says_it_is_idle, error != hipSuccess))) {
        device_forget_error(error);
        return (struct block_freed){FREE_WAITED, block_free_by_hip(block, block_address(block))};
    }
    (void)block_pool_put(block, NULL, false);
    return (struct block_freed){FREE_WAITED, hipSuccess};
}

struct block_freed block_free(void *address, struct stream *stream) {
    struct block *block = block_find(address);
    struct block_freed freed = {FREE_DONE, hipSuccess};
    int live = BLOCK_LIVE;
    if (UNLIKELY(!block ||
                 !PROOF(block_is_freed_once, cas_acq_rel(&block->state, &live, BLOCK_IDLE))) &&
        !end_hold(block, address, &freed))
        return freed;
    if (UNLIKELY(!exclusive_hip() && !block_confirm(block)))
        return (struct block_freed){FREE_TO_HIP, block_free_by_hip(block, address)};
    const int device = block->device;
    const size_t size = block->size;
    const bool in_order = LIKELY(stream && stream->device == device);
    const bool care = !in_order || load_relaxed(&care_of_frees);
    /* From where it is put on it may be another thread's. */
    if (UNLIKELY(!in_order || !block_pool_put(block, stream, care)))
        freed = free_after_waiting(block);
    if (UNLIKELY(care))
        keep_to_limit(device, size);
    return freed;
}

/* ---- for graphs ---- */

bool block_leave_to_graph(struct block *block, struct stream *stream) {
    int state = load_acquire(&block->state);
    if (!block_held_by_program(block))
        return false;
    block->fence.stream = stream; /* the program's, as long as it holds the block */
    if (state != BLOCK_GRAPH)
        block->graph = 0;
    if (!PROOF(block_is_kept_for_its_graph, cas_acq_rel(&block->state, &state, BLOCK_GRAPH_OWNED)))
        return false;
    if (state == BLOCK_SHARED)
        lazy_visible(-1);
    return true;
}

bool block_give_graph(void *address) {
    struct block *block = block_find(address);
    if (!change_block(block, BLOCK_LIVE, BLOCK_GRAPH))
        return false;
    block->graph = 0;
    return true;
}

bool block_serve_graph(void *address) {
    struct block *block = block_find(address);
    return PROOF(kept_block_serves_its_graph, change_block(block, BLOCK_GRAPH_OWNED, BLOCK_GRAPH));
}

bool block_take_from_graph(void *address) {
    struct block *block = block_find(address);
    if (change_block(block, BLOCK_GRAPH, BLOCK_LIVE))
        return true;
    if (!change_block(block, BLOCK_GRAPH_OWNED, BLOCK_IDLE))
        return false;
    const int device = block->device;
    const size_t size = block->size;
    (void)block_pool_put(block, NULL, false);
    keep_to_limit(device, size);
    return true;
}

/* Looks at all blocks: a graph is built once. */
static struct block *take_kept(size_t size, int device, const struct stream *stream,
                               uint64_t graph) {
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        int kept = BLOCK_GRAPH_OWNED;
        if (block_size(block) == size && block_device(block) == device &&
            PROOF(block_is_of_this_capture, block->graph == graph) &&
            block->fence.stream == stream && cas_acq_rel(&block->state, &kept, BLOCK_GRAPH))
            return block;
    }
    return NULL;
}

void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error) {
    const size_t size = block_round(bytes);
    const int device = stream->device;
    void *address = NULL;
    *error = hipSuccess;
    (void)device_kept(device);
    struct block *block = graph ? take_kept(size, device, stream, graph) : NULL;
    if (block) {
        call_tell(CALL_HIT);
        return block_address(block);
    }
    *error = hip.Malloc(&address, size);
    if (*error == hipSuccess)
        stats_miss(CACHE_MEMORY);
    if (*error != hipSuccess ||
        !block_enter(address, size, device,
                     PROOF_VALUE(captured_block_is_its_graphs, BLOCK_GRAPH, BLOCK_LIVE)))
        return address;
    block = block_find(address);
    block->graph = graph;
    observe(OBSERVED_BLOCK_ALLOCATED, address, size, device);
    return address;
}

/* ---- for the manager ---- */

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

static hipError_t evict_block(void *address) {
    struct block *block = block_find(address);
    if (!block || !device_kept(block_device(block)) || load_acquire(&block->state) == BLOCK_GONE)
        return hipErrorNotFound;
    if (!stream_all_quiet() || !block_retire(block)) /* hipFree would wait, and others for it */
        return hipErrorNotReady;
    stats_eviction(CACHE_MEMORY);
    return block_free_by_hip(block, address);
}

const struct cache block_cache = {.name = "blocks",
                                  .trim = give_blocks_back,
                                  .invalidate = block_forget_device,
                                  .stream_begins = block_pool_stream_begins,
                                  .list = list_blocks,
                                  .evict = evict_block};
