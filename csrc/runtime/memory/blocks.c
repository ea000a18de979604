/* The life of a block: its entry in the table, its allocation and its free, and which blocks leave
 * for the limit. The pools know where a freed block lies. */
#include "memory/blocks.h"
#include "atomics.h"
#include "check.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/hip.h"
#include "driver/report.h"
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

static struct handle_map block_map = HANDLE_MAP(struct block);

struct block *block_find(const void *address) {
    return handle_find(&block_map, address);
}

struct block *block_first(void) {
    return handle_first(&block_map);
}

/* ---- the table ---- */

/* By device, under tables_lock. */
static struct memory_account ledger[MOST_DEVICES];

/* Whether the account of a device is the sum of its blocks. Under tables_lock. */
CHECKS bool ledger_agrees(int device) {
    size_t bytes = 0, blocks = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block))
        if (block->booked && block->device == device) {
            bytes += block->size;
            blocks++;
        }
    return bytes == ledger[device].reserved && blocks == ledger[device].blocks;
}

/* Under tables_lock. */
static void remove_block(struct block *block) {
    store_release(&block->state, BLOCK_GONE);
    if (!block->booked)
        return;
    struct memory_account *account = &ledger[block->device];
    PROOF_STEP(block_leaves_its_account_once, block->booked = false);
    store_relaxed(&account->reserved, account->reserved - block->size);
    account->blocks--;
    CHECK(ledger_agrees(block->device));
    ranges_remove((uintptr_t)block->handle.key);
}

/* HIP would not hand out memory of a block that it did not get back. So the program has freed it by
 * a call of its own. */
static void remove_overlapped(const void *address, size_t size) {
    void *begin;
    while ((begin = ranges_begin(address, size))) {
        struct block *block = block_find(begin);
        if (!block || !block->booked) {
            ranges_remove((uintptr_t)begin); /* registered */
            continue;
        }
        if (block->state == BLOCK_IDLE)
            (void)block_unlink(block);
        remove_block(block);
    }
}

struct block *block_insert(void *address, size_t size, int device, int state) {
    const bool shared = state == BLOCK_SHARED;
    struct block *block = handle_insert(&block_map, address);
    struct memory_account *account = &ledger[device];
    if (!block)
        return NULL;
    pthread_mutex_lock(&tables_lock);
    remove_overlapped(address, size);
    remove_block(block);
    fetch_add_relaxed(&block_clock, 1);
    store_relaxed(&block->size, size);
    store_relaxed(&block->device, device);
    block_note_use(block);
    block->shared = shared;
    block->number = 0;
    block_clear_fences(block);
    block->booked = true;
    account->blocks++;
    store_relaxed(&account->reserved, account->reserved + size);
    if (account->reserved > account->peak_reserved)
        account->peak_reserved = account->reserved;
    CHECK(ledger_agrees(device));
    ranges_add(&block->range, (uintptr_t)address, size, shared ? RANGE_MANAGED : RANGE_DEVICE);
    store_release(&block->state, PROOF_VALUE(new_block_is_held, state, BLOCK_IDLE));
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* Has HIP free an address, in a block that is in no pool or in none. HIP may hand the address to
 * another thread as soon as it has it, so it leaves the tables before. */
static hipError_t free_by_hip(struct block *block, void *address) {
    const size_t size = block ? block->size : 0;
    const int device = block ? block->device : 0;
    pthread_mutex_lock(&tables_lock);
    ranges_remove((uintptr_t)address);
    if (block)
        remove_block(block);
    pthread_mutex_unlock(&tables_lock);
    const hipError_t error = hip.Free(address);
    if (block)
        observe(OBSERVED_BLOCK_FREED, block_address(block), size, device);
    return error;
}

struct block *block_around(const void *address) {
    pthread_mutex_lock(&tables_lock);
    const void *begin = ranges_begin(address, 1);
    pthread_mutex_unlock(&tables_lock);
    struct block *block = begin ? block_find(begin) : NULL;
    return block && block->state != BLOCK_GONE ? block : NULL;
}

/* Asks HIP whether it still has the block as it was handed out. The program may have freed it by a
 * call of its own, or have reset the device. NVIDIA's driver does not say where managed memory
 * begins, but has a number for it. */
static bool hip_has(const struct block *block) {
    void *begin = NULL;
    size_t size = 0;
    uint64_t number = 0;
    if (UNLIKELY(block->shared))
        return PROOF(hip_has_the_shared_block,
                     device_memory_number(block_address(block), &number) && number != 0 &&
                         number == block->number);
    return PROOF(hip_has_the_block,
                 hip.MemGetAddressRange(&begin, &size, block_address(block)) == hipSuccess &&
                     begin == block->handle.key && size >= block->size);
}

/* Under tables_lock, and with HIP's word for it from before. */
static void invalidate_block(struct block *block) {
    if (DOUBT(forgotten_block_lies_elsewhere, block->shared) && block->state == BLOCK_IDLE)
        (void)block_unlink(block);
    remove_block(block);
}

static bool outlives_reset(const struct block *block) {
    return block->shared && block->state != BLOCK_GONE &&
           DOUBT(shared_block_outlives_the_reset, hip_has(block));
}

/* Removes the blocks of a device that was reset, or all as HIP ends. Managed memory outlives the
 * reset of one of several devices: what HIP still has of it stays. HIP is not asked under the lock.
 * A block that is entered in between is of the time after the reset. */
static void invalidate_blocks(int device) {
    struct block *const newest = block_first();
    for (struct block *block = newest; block; block = handle_next(block))
        block->outlives =
            device != ALL_DEVICES && block_device(block) == device && outlives_reset(block);
    pthread_mutex_lock(&tables_lock);
    block_pools_empty(device);
    for (struct block *block = newest; block; block = handle_next(block))
        if (PROOF(reset_ends_its_own_blocks, of_device(device, block->device)) && !block->outlives)
            PROOF_STEP(reset_ends_blocks, invalidate_block(block));
    pthread_mutex_unlock(&tables_lock);
    ranges_change();
}

size_t block_reserved(int device) {
    return load_relaxed(&ledger[device].reserved);
}

/* ---- the limit ----
 *
 * It bounds the idle blocks, which the program has freed. So it is enforced where blocks are
 * freed: stock's hipFree, too, waits for the device there. An allocation evicts nothing unless
 * HIP has no memory.
 *
 * As long as a device holds no more from HIP than the limit there is nothing to count. Beyond it
 * each free is added up. When the sum reaches the limit, the library looks at all blocks. The least
 * recently used leave until seven eighths of the limit are idle, so an eighth is freed before the
 * next look. */

static size_t
    freed[MOST_DEVICES]; /* no less than what is idle, where the device is over its limit */

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

/* Takes an idle block out of its pool, and has HIP free it; *error is HIP's answer. False if the
 * block is not idle. */
static bool evict_idle(struct block *block, hipError_t *error) {
    if (load_acquire(&block->state) != BLOCK_IDLE)
        return false;
    pthread_mutex_lock(&tables_lock);
    /* It may be on its way into a pool just now: then it is not found, and stays. */
    const bool owned = block_unlink(block);
    if (PROOF(block_leaves_its_pool_first, owned))
        remove_block(block);
    pthread_mutex_unlock(&tables_lock);
    if (!owned)
        return false;
    stats_eviction(CACHE_MEMORY);
    *error = free_by_hip(block, block_address(block));
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

/* Evicts the idle blocks up to a rank, but so many of that rank as `most` bytes hold. Returns how
 * many go. hipFree waits for the device, so a block whose stream is still at work may go too. */
static int evict_up_to(int device, uint64_t rank, size_t most) {
    int count = 0;
    hipError_t error;
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        const uint64_t own = rank_of(block);
        const size_t size = block_size(block);
        if (!is_idle_on(device, block) || own > rank)
            continue;
        if (own == rank && size <= most) {
            most -= size;
        } else if (evict_idle(block, &error)) {
            REPORT(free_expression, error, NULL);
            count++;
        }
    }
    return count;
}

/* Evicts the least recently used blocks until no more than `most` bytes are idle; returns how many
 * are. Halves the ranks until the one is found above which so much is idle. */
static size_t evict_oldest(int device, size_t most) {
    uint64_t rank = 0, end = (load_relaxed(&block_clock) + 1) << USES_BITS;
    while (rank < end) {
        const uint64_t middle = rank + (end - rank) / 2;
        if (bytes_above(device, middle) > most)
            rank = middle + 1;
        else
            end = middle;
    }
    const size_t above = bytes_above(device, rank);
    (void)evict_up_to(device, rank, above < most ? most - above : 0);
    return bytes_above(device, 0);
}

void block_enforce_limit(int device, size_t size) {
    const size_t limit = cache_limits.memory_bytes[device];
    if (!limit || block_reserved(device) <= limit)
        return;
    fetch_add_relaxed(&block_clock, 1); /* from here on the order of frees matters */
    if (add_fetch_relaxed(&freed[device], size) <= limit || !device_kept(device))
        return;
    limit_reached();
    PROOF_STEP(blocks_beyond_the_limit_leave,
               store_relaxed(&freed[device], evict_oldest(device, limit - limit / 8)));
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

/* For what no device of this size can have nothing is evicted. HIP is not asked: a call that
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
    struct block *block = block_insert(address, size, device, shared ? BLOCK_SHARED : BLOCK_LIVE);
    if (block && shared && !exclusive_hip() && /* without memory for the entry: freed by hipFree */
        !device_memory_number(address, &block->number))
        block->number = 0;
    observe(OBSERVED_BLOCK_ALLOCATED, address, size, device);
    note_reserved(device, size);
    return address;
}

struct block_allocated block_search(uint64_t bytes, int device, struct stream *order, bool shared) {
    struct block_allocated made = {NULL, CALL_MISS, hipSuccess};
    if (!block_serves(bytes, device)) {
        made.how = CALL_BYPASS;
        made.error = hip.Malloc(&made.address, bytes);
        return made;
    }
    const size_t size = block_round(bytes);
    struct block *block = block_pool_search(device, size, order, shared);
    if (block) {
        made.how = CALL_HIT;
        block_hand_out(block, shared ? BLOCK_SHARED : BLOCK_LIVE);
        made.address = block_address(block);
    } else {
        made.address = allocate_new(size, device, shared, &made.error);
    }
    if (DOUBT(device_has_no_managed_memory, shared && made.error == hipErrorNotSupported)) {
        PROOF_STEP(attempt_leaves_no_error, device_forget_error(made.error));
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
    const bool shared = around && around->shared;
    const hipError_t error = free_by_hip(around, address);
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
        return block_change(block, BLOCK_LIVE, BLOCK_IDLE) || end_hold(block, address, freed);
    if (block_change(block, BLOCK_SHARED, BLOCK_IDLE)) {
        lazy_visible(-1);
        return true;
    }
    *freed = free_unheld(address);
    return false;
}

/* Waits for the device where no fence says when the block is idle. The program named the null
 * stream, one that is gone, one of another device, or one of its own that the table does not know.
 * Or too many blocks have several fences. */
struct block_freed block_free(void *address, struct stream *stream) {
    struct block *block = block_find(address);
    struct block_freed freed = {FREE_DONE, hipSuccess};
    int live = BLOCK_LIVE;
    if (UNLIKELY(!block ||
                 !PROOF(block_is_freed_once, cas_acq_rel(&block->state, &live, BLOCK_IDLE))) &&
        !end_hold(block, address, &freed))
        return freed;
    if (UNLIKELY(!exclusive_hip() && !hip_has(block)))
        return (struct block_freed){FREE_TO_HIP, free_by_hip(block, address)};
    const int device = block->device;
    const size_t size = block->size;
    const bool in_order = LIKELY(stream && stream->device == device);
    const bool care = !in_order || load_relaxed(&care_of_frees);
    if (UNLIKELY(!in_order || !block_fence(block, stream, care))) {
        freed.verdict = FREE_WAITED;
        freed.error = PROOF_VALUE(unordered_free_waits, stream_wait_for_device(device), hipSuccess);
        if (UNLIKELY(DOUBT(nothing_says_it_is_idle, freed.error != hipSuccess))) {
            device_forget_error(freed.error);
            freed.error = free_by_hip(block, address);
            return freed;
        }
        block_fence_idle(block);
    }
    block_pool_put(block); /* from here on it may be another thread's */
    if (UNLIKELY(care))
        block_enforce_limit(device, size);
    return freed;
}

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

/* ---- for statistics and the manager ---- */

struct memory_account block_ledger(int device) {
    return ledger[device];
}

struct memory_account block_account(int device) {
    struct memory_account account = ledger[device];
    if (!account.peak_reserved)
        return account;
    account.blocks = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block)) {
        const int state = load_acquire(&block->state);
        if (state == BLOCK_GONE || block_device(block) != device)
            continue;
        account.blocks++;
        if (block_held_by_program(block)) {
            account.live++;
            account.allocated += block_size(block);
        }
    }
    return account;
}

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
    hipError_t error;
    struct block *block = block_find(address);
    if (!block || !device_kept(block_device(block)) || load_acquire(&block->state) == BLOCK_GONE)
        return hipErrorNotFound;
    if (!stream_all_quiet() ||
        !evict_idle(block, &error)) /* hipFree would wait, and others for it */
        return hipErrorNotReady;
    return error;
}

static int trim_blocks(int device) {
    return evict_up_to(device, UINT64_MAX, 0);
}

const struct cache block_cache = {.name = "blocks",
                                  .trim = trim_blocks,
                                  .invalidate = invalidate_blocks,
                                  .stream_begins = block_pool_stream_begins,
                                  .list = list_blocks,
                                  .evict = evict_block};
