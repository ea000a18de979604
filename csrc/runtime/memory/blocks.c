/* Allocates, frees and evicts blocks, and maintains the table of blocks and the blocks' fences. */
#include "memory/blocks.h"
#include "atomics.h"
#include "check.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "memory/eviction_queue.h"
#include "memory/miss_reason.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/ranges.h"
#include "streams/held.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"
#include "telemetry/publish.h"

#include <stdlib.h>

/* A search visits each block that has several fences and the wanted size. So the pools of a device
 * hold at most WAITING_MOST blocks with several fences. */
enum { POOLS_PER_SEARCH = 8, QUESTIONS_PER_SEARCH = 2, WAITING_MOST = 256 };
enum { USES_BITS = 8, MOST_USES = (1 << USES_BITS) - 1 };

static const char free_expression[] = "hipFree(ptr)";

uint64_t block_clock = 1;

static struct handle_map block_map = HANDLE_MAP(struct block);

static struct block_pool device_pools[MOST_DEVICES];
static struct block_pool shared_pools[MOST_DEVICES]; /* for managed memory, whose blocks any stream
                                                      * may use */
static struct block_pool *stream_pools; /* the pools of all streams on which the program has freed
                                         * memory */
static struct block_pool *next_pool;    /* the pool where the next search starts */

struct block *block_find(const void *address) {
    return handle_find(&block_map, address);
}

struct block *block_first(void) {
    return handle_first(&block_map);
}

/* ---- fences ---- */

static void set_fence(struct fence *fence, struct stream *stream) {
    store_relaxed(&fence->stream, stream);
    store_relaxed(&fence->number, stream_next_fence(stream));
}

/* Truncates the list of fences after `last`. */
static void end_fences(struct fence *last) {
    if (last->next)
        store_relaxed(&last->next->stream, NULL);
}

/* Clears the fences of a block that the caller owns. */
static void clear_fences(struct block *block) {
    store_relaxed(&block->fence.stream, NULL);
    end_fences(&block->fence);
}

static bool has_several_fences(const struct block *block) {
    const struct fence *second = load_acquire(&block->fence.next);
    return second && load_relaxed(&second->stream);
}

static __attribute__((noinline)) bool add_other_fences(struct block *block) {
    const int device = block->device;
    struct fence *last = &block->fence;
    for (struct stream *other = stream_first(); other; other = stream_next(other)) {
        if (other == block->fence.stream ||
            !DOUBT(other_streams_are_at_work, stream_is_at_work(other)) ||
            !PROOF(other_stream_is_of_the_device, load_relaxed(&other->device) == device))
            continue;
        if (!last->next)
            store_release(&last->next, (struct fence *)calloc(1, sizeof *last));
        if (!last->next)
            return false;
        last = last->next;
        set_fence(last, other);
    }
    end_fences(last);
    return last == &block->fence ||
           !DOUBT(too_many_blocks_wait, load_relaxed(&device_pools[device].waiting) +
                                                load_relaxed(&shared_pools[device].waiting) >=
                                            WAITING_MOST);
}

/* Returns true if the next work of `stream` may use a block. Each fence of the block is then done
 * or belongs to `stream`. If a fence is not done, sets *holder to the stream of that fence. If the
 * caller does not own the block, another thread may reuse the block at any time. Such a caller must
 * first take the block, and then call this function again. */
static bool is_ready(const struct block *block, const struct stream *stream,
                     struct stream **holder) {
    const struct fence *fence =
        PROOF_VALUE(own_stream_has_passed_too, &block->fence, load_acquire(&block->fence.next));
    while (fence) {
        struct stream *needed = load_relaxed(&fence->stream);
        if (!needed)
            return true;
        if (needed != stream && !PROOF(stream_has_passed_the_free,
                                       stream_fence_done(needed, load_relaxed(&fence->number)) ||
                                           stream_is_known_idle(needed))) {
            *holder = needed;
            return false;
        }
        fence = PROOF_VALUE(every_other_stream_has_passed, load_acquire(&fence->next),
                            fence == &block->fence ? fence->next : NULL);
    }
    return true;
}

/* ---- pools ---- */

/* Returns the pool of a stream's blocks; NULL if the stream has no pool on this device. */
static struct block_pool *pool_on(const struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream_pools);
    while (pool && (pool->owner != stream || pool->device != device))
        pool = pool->next;
    return pool;
}

/* Selects the pool of a stream that HIP has just created. HIP may have used the stream's handle
 * before, for a stream of another device. The earlier stream's blocks then remain in the pool of
 * that stream and device. */
static void stream_enters(struct stream *stream) {
    struct block_pool *pool = load_acquire(&stream->pool);
    if (DOUBT(handle_moved_to_another_device, !pool || pool->device != stream->device))
        cas_acq_rel(&stream->pool, &pool, pool_on(stream, stream->device));
}

/* Creates and returns a stream's pool at the first free on the stream. Returns NULL if there is no
 * memory for the pool. */
static __attribute__((noinline)) struct block_pool *make_pool(struct stream *stream, int device) {
    struct block_pool *pool = NULL;
    struct block_pool *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->owner = stream;
    fresh->device = device;
    if (!cas_acq_rel_acquire(&stream->pool, &pool, fresh)) {
        free(fresh);
        return pool;
    }
    pthread_mutex_lock(&tables_lock);
    fresh->next = stream_pools;
    store_release(&stream_pools, fresh);
    pthread_mutex_unlock(&tables_lock);
    return fresh;
}

static __attribute__((noinline)) void add_overflow(struct block_pool *pool, struct block *block) {
    struct block **chain = &pool->overflow[block_set(block->size)];
    pthread_mutex_lock(&tables_lock);
    store_relaxed(&pool->waiting, pool->waiting + has_several_fences(block));
    block->next_overflow = *chain;
    store_relaxed(chain, block);
    pthread_mutex_unlock(&tables_lock);
}

/* Removes a block from its chain. The caller then owns the block. Under tables_lock. */
static struct block *take_overflow(struct block_pool *pool, struct block **link) {
    struct block *block = *link;
    store_relaxed(link, block->next_overflow);
    store_relaxed(&pool->waiting, pool->waiting - has_several_fences(block));
    clear_fences(block);
    return block;
}

/* Clears the fences of each block whose fences are done, and then no longer counts the block in
 * `waiting`. */
static void drop_done_fences(struct block_pool *pool) {
    struct stream *holder;
    if (!load_relaxed(&pool->waiting))
        return;
    pthread_mutex_lock(&tables_lock);
    for (int set = 0; set < POOL_SETS && pool->waiting; set++)
        for (struct block *block = pool->overflow[set]; block; block = block->next_overflow)
            if (has_several_fences(block) && is_ready(block, NULL, &holder)) {
                clear_fences(block);
                store_relaxed(&pool->waiting, pool->waiting - 1);
            }
    pthread_mutex_unlock(&tables_lock);
}

void block_pool_put(struct block *block) {
    struct stream *stream = block->fence.stream;
    const bool several = has_several_fences(block);
    struct block_pool *pool = NULL;
    if (LIKELY(stream && !several && !block->shared)) {
        pool = load_acquire(&stream->pool);
        if (UNLIKELY(!pool))
            pool = make_pool(stream, block->device);
    }
    if (UNLIKELY(!pool))
        pool = DOUBT(shared_block_goes_to_shared_memory, block->shared)
                   ? &shared_pools[block->device]
                   : &device_pools[block->device];
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS && LIKELY(!several); way++) {
        struct block *empty = NULL;
        if (!load_relaxed(&ways[way]) && cas_acq_rel(&ways[way], &empty, block))
            return;
    }
    add_overflow(pool, block);
}

/* ---- taking any block out of a pool ---- */

/* Under tables_lock. */
static bool unlink_from(struct block_pool *pool, struct block *block) {
    const size_t set = block_set(block->size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *expected = block;
        if (cas_acq_rel(&pool->ways[set][way], &expected, NULL))
            return true;
    }
    struct block **link = &pool->overflow[set];
    while (*link && *link != block)
        link = &(*link)->next_overflow;
    return *link && take_overflow(pool, link);
}

/* Removes an idle block from its pool; returns false if the block is in no pool. Under tables_lock.
 * If there was no memory for a stream's pool, the stream's blocks are in the device's pool. */
static bool unlink_block(struct block *block) {
    const struct stream *stream = load_relaxed(&block->fence.stream);
    if (DOUBT(cached_block_is_shared, block->shared))
        return unlink_from(&shared_pools[block->device], block);
    struct block_pool *pool = stream ? pool_on(stream, block->device) : NULL;
    return (pool && unlink_from(pool, block)) || unlink_from(&device_pools[block->device], block);
}

/* Under tables_lock. */
static void empty_pool(struct block_pool *pool) {
    for (int set = 0; set < POOL_SETS; set++) {
        for (int way = 0; way < POOL_WAYS; way++)
            store_release(&pool->ways[set][way], NULL);
        store_relaxed(&pool->overflow[set], NULL);
    }
    store_relaxed(&pool->waiting, 0);
}

/* ---- ages ---- */

/* Returns a block's age for eviction. The age orders blocks by the time of the last free, and
 * then by the number of uses. */
static uint64_t age_of(const struct block *block) {
    const uint64_t uses = load_relaxed(&block->uses);
    return load_relaxed(&block->last_use) << USES_BITS |
           (uses < MOST_USES ? uses : (uint64_t)MOST_USES);
}

/* Under tables_lock. */
static void enter_queue(struct block *block) {
    if (!block->queued)
        eviction_queue_put(block, age_of(block));
}

/* ---- the table ---- */

/* By device. Threads write the ledger under tables_lock; statistics and the exit read the ledger
 * without the lock. */
static struct memory_account ledger[MOST_DEVICES];
static size_t large_bytes[MOST_DEVICES]; /* the part of the ledger's reserved bytes that is in
                                          * blocks above BLOCK_EXACT_UP_TO */
static size_t slack_bytes[MOST_DEVICES]; /* bytes by which sizes were rounded up when HIP allocated
                                          * the blocks; under tables_lock */
bool blocks_have_slack;

/* Returns whether the ledger of a device agrees with the device's blocks in the table. Under
 * tables_lock. */
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
    const int state = exchange_acq_rel(&block->state, BLOCK_GONE);
    if (!block->booked)
        return;
    struct memory_account *account = &ledger[block->device];
    PROOF_STEP(block_leaves_its_account_once, block->booked = false);
    if (state > BLOCK_IDLE)
        block_unask(block);
    store_relaxed(&account->reserved, account->reserved - block->size);
    store_relaxed(&account->blocks, account->blocks - 1);
    if (block->size > BLOCK_EXACT_UP_TO)
        store_relaxed(&large_bytes[block->device], large_bytes[block->device] - block->size);
    store_relaxed(&slack_bytes[block->device], slack_bytes[block->device] - block->slack);
    CHECK(ledger_agrees(block->device));
    ranges_remove((uintptr_t)block->handle.key);
}

/* Removes the blocks that overlap a new allocation. HIP allocates the same memory again only after
 * a free, so the program has freed the overlapping blocks by calls to HIP. */
static void remove_overlapped(const void *address, size_t size) {
    void *begin;
    while ((begin = ranges_begin(address, size))) {
        struct block *block = block_find(begin);
        if (!block || !block->booked) {
            ranges_remove((uintptr_t)begin); /* registered */
            continue;
        }
        if (block->state == BLOCK_IDLE)
            (void)unlink_block(block);
        remove_block(block);
    }
}

struct block *block_insert(void *address, size_t size, size_t bytes, int device, int state) {
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
    store_relaxed(&block->uses, block->uses + 1);
    block->shared = shared;
    block->number = 0;
    clear_fences(block);
    block->booked = true;
    store_relaxed(&account->blocks, account->blocks + 1);
    store_relaxed(&account->reserved, account->reserved + size);
    if (account->reserved > account->peak_reserved)
        store_relaxed(&account->peak_reserved, account->reserved);
    if (size > BLOCK_EXACT_UP_TO)
        store_relaxed(&large_bytes[device], large_bytes[device] + size);
    CHECK(ledger_agrees(device));
    ranges_add(&block->range, (uintptr_t)address, size, shared ? RANGE_MANAGED : RANGE_DEVICE);
    block->slack = size - block_round(bytes);
    store_relaxed(&slack_bytes[device], slack_bytes[device] + block->slack);
    block_ask(block, bytes);
    enter_queue(block);
    store_release(&block->state, PROOF_VALUE(new_block_is_held, state, BLOCK_IDLE));
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* Calls HIP to free an address. A block at that address must not be in a pool. HIP may hand the
 * address to another thread at once, so the block is removed from the tables before HIP frees it.
 */
static hipError_t free_by_hip(struct block *block, void *address) {
    const size_t size = block ? block->size : 0;
    const int device = block ? block->device : 0;
    pthread_mutex_lock(&tables_lock);
    if (block)
        remove_block(block);
    else
        ranges_remove((uintptr_t)address);
    pthread_mutex_unlock(&tables_lock);
    const hipError_t error = hip.Free(address);
    if (block)
        publish_event(BLOCK_FREED, block_address(block), size, device);
    return error;
}

struct block *block_around(const void *address) {
    pthread_mutex_lock(&tables_lock);
    const void *begin = ranges_begin(address, 1);
    pthread_mutex_unlock(&tables_lock);
    struct block *block = begin ? block_find(begin) : NULL;
    return block && block->state != BLOCK_GONE ? block : NULL;
}

/* Asks HIP whether the allocation that contains the block still exists. The program may have freed
 * the block by calling HIP, or have reset the device. NVIDIA's driver does not report where managed
 * memory begins, but gives each allocation a number. */
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

/* A hit calls this function only if other code may call HIP. */
static __attribute__((noinline)) bool is_still_there(const struct block *block) {
    return PROOF(nobody_has_freed_the_block, witness_confirms()) || hip_has(block);
}

/* Under tables_lock. */
static void invalidate_block(struct block *block) {
    if (DOUBT(forgotten_block_lies_elsewhere, block->shared) && block->state == BLOCK_IDLE)
        (void)unlink_block(block);
    remove_block(block);
}

/* Removes the blocks of a device that was reset, or all blocks when HIP ends. With several devices,
 * managed memory survives the reset of a device, so the table keeps each shared block that still
 * exists in HIP. The function does not call HIP under the lock. A block that another thread adds
 * after `newest` was read is newer than the reset, and remains. */
static void invalidate_blocks(int device) {
    struct block *const newest = block_first();
    for (struct block *block = newest; block; block = handle_next(block))
        block->outlives = device != ALL_DEVICES && block_device(block) == device && block->shared &&
                          block->state != BLOCK_GONE &&
                          DOUBT(shared_block_outlives_the_reset, hip_has(block));
    pthread_mutex_lock(&tables_lock);
    for (int each = 0; each < MOST_DEVICES; each++)
        if (of_device(device, each))
            empty_pool(&device_pools[each]);
    for (struct block_pool *pool = stream_pools; pool; pool = pool->next)
        if (of_device(device, pool->device))
            empty_pool(pool);
    for (struct block *block = newest; block; block = handle_next(block))
        if (PROOF(reset_ends_its_own_blocks, of_device(device, block->device)) && !block->outlives)
            PROOF_STEP(reset_ends_blocks, invalidate_block(block));
    pthread_mutex_unlock(&tables_lock);
    ranges_change();
}

size_t block_reserved(int device) {
    return load_relaxed(&ledger[device].reserved);
}

/* ---- which blocks leave ----
 *
 * Two bounds apply to the bytes that HIP holds and the program did not ask for. These are idle
 * blocks, and the part of a held block beyond the request. The first bound is the limit. The second
 * bound is a multiple of the most bytes that the program has recently held, so old sizes leave.
 * Blocks leave when the program frees a block, because a free waits for the device with stock too.
 * An allocation evicts blocks only if the device has no memory.
 *
 * The library knows the bytes of large blocks that the program holds. A small block counts as idle
 * from its free until it leaves the eviction queue, also if the program has got it again. */

/* A free evicts large blocks beyond PEAK_PARTS / 4 of the recent peak. After each large block from
 * HIP, the recent peak falls by a 256th, unless the program holds as much. */
enum { PEAK_PARTS = 7, PEAK_SHIFT = 8 };

static size_t totals[MOST_DEVICES];     /* bytes of a device's memory; 0: unknown */
static size_t capacities[MOST_DEVICES]; /* the most reserved bytes for which HIP has memory, as far
                                         * as the library knows; 0: unknown */
static size_t recent_peaks[MOST_DEVICES]; /* bytes of large blocks that the program has asked for */
static ptrdiff_t asked_apart[MOST_DEVICES]; /* bytes that ended threads have counted */

void block_count_apart(int device, ptrdiff_t bytes) {
    fetch_add_relaxed(&asked_apart[device], bytes);
}

static void thread_ends(struct thread *thread) {
    for (int device = 0; device < MOST_DEVICES; device++) {
        block_count_apart(device, load_relaxed(&thread->asked[device]));
        store_relaxed(&thread->asked[device], 0);
    }
}

/* Returns the bytes of large blocks for which the program has asked and which it holds. Under
 * tables_lock. */
static size_t asked_bytes(int device) {
    ptrdiff_t bytes = load_relaxed(&asked_apart[device]);
    for (const struct thread *thread = thread_list; thread; thread = thread->next)
        bytes += load_relaxed(&thread->asked[device]);
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Returns an upper bound of the bytes that HIP holds and the program did not ask for. Under
 * tables_lock. */
static size_t unused_bytes(int device) {
    const size_t large = load_relaxed(&large_bytes[device]), asked = asked_bytes(device);
    return eviction_queue_small_bytes(device) + (large > asked ? large - asked : 0);
}

/* Under tables_lock. */
static void raise_recent_peak(int device, size_t asked) {
    if (asked > recent_peaks[device])
        store_relaxed(&recent_peaks[device], asked);
}

static bool is_beyond_peak(int device) {
    return load_relaxed(&large_bytes[device]) / PEAK_PARTS >
           load_relaxed(&recent_peaks[device]) / 4;
}

/* Returns true for the size of a large block that no later request shares. HIP had no memory for
 * the rounded size, or the limit left no room for slack. Such a block leaves at its free. */
static __attribute__((noinline)) bool is_exact(size_t size) {
    return DOUBT(block_serves_no_class, size > BLOCK_EXACT_UP_TO && size != block_class(size));
}

static size_t limit_of(int device) {
    size_t limit = cache_limits.memory_bytes[device];
    if (limit)
        return limit;
    size_t available = 0, total = 0;
    (void)device_answered(hip.MemGetInfo(&available, &total));
    store_relaxed(&totals[device], total);
    limit = options.memory_limit_bytes;
    if (!limit)
        limit = (size_t)((double)total * options.memory_limit_fraction / device_ranks());
    limit = limit ? limit : 1;
    cache_limits.memory_bytes[device] = limit;
    return limit;
}

/* Calls HIP to free an idle block that the caller has removed from its pool and from the table. */
static hipError_t evict_removed(struct block *block) {
    stats_eviction(CACHE_MEMORY);
    return free_by_hip(block, block_address(block));
}

/* Removes an idle block from its pool, and calls HIP to free the block; *error is HIP's answer.
 * Returns false if the block is not idle. */
static bool evict_idle(struct block *block, hipError_t *error) {
    if (load_acquire(&block->state) != BLOCK_IDLE)
        return false;
    pthread_mutex_lock(&tables_lock);
    /* While another thread moves the block into a pool, unlink_block does not find the block, and
     * the block stays. */
    const bool owned = unlink_block(block);
    if (PROOF(block_leaves_its_pool_first, owned))
        remove_block(block);
    pthread_mutex_unlock(&tables_lock);
    if (!owned)
        return false;
    *error = evict_removed(block);
    return true;
}

static bool is_idle_on(int device, const struct block *block) {
    return load_acquire(&block->state) == BLOCK_IDLE && of_device(device, block_device(block));
}

/* Returns the queue whose first block has the lower age; QUEUES if both queues are empty. Under
 * tables_lock. */
static enum eviction_queue oldest_queue(int device, enum eviction_queue first) {
    const struct block *oldest = NULL;
    enum eviction_queue found = QUEUES;
    for (enum eviction_queue queue = first; queue < QUEUES; queue++) {
        const struct block *block = eviction_queue_first(device, queue);
        if (!block || (oldest && oldest->age <= block->age))
            continue;
        oldest = block;
        found = queue;
    }
    return found;
}

/* Removes the least recently used idle block of the queues from `first` on from its pool and from
 * the table. Returns NULL if the queues contain no idle block. A block that the program holds
 * leaves the queue until its next free. Under tables_lock. */
static struct block *remove_oldest_block(int device, enum eviction_queue first) {
    enum eviction_queue queue;
    fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    while ((queue = oldest_queue(device, first)) != QUEUES) {
        struct block *block = eviction_queue_first(device, queue);
        const uint64_t age = age_of(block);
        const bool is_old = block->age == age;
        eviction_queue_remove_first(device, queue);
        if (load_acquire(&block->state) != BLOCK_IDLE || !block->booked)
            continue;
        if (block->device != device || !is_old) {
            enter_queue(block);
            continue;
        }
        /* While another thread moves the block into or out of a pool, the block stays. */
        if (!PROOF(block_leaves_its_pool_first, unlink_block(block))) {
            store_relaxed(&block->last_use, add_fetch_relaxed(&block_clock, 1));
            enter_queue(block);
            return NULL;
        }
        remove_block(block);
        return block;
    }
    return NULL;
}

/* A test of a device for which blocks leave. Under tables_lock. */
typedef bool must_leave(int device);

static bool is_over_limit(int device) {
    return unused_bytes(device) > cache_limits.memory_bytes[device];
}

/* Evicts the least recently used idle blocks while `beyond` holds. A block with pending work may be
 * evicted too, because hipFree waits for the device. */
static void evict_while(must_leave *beyond, int device, enum eviction_queue first) {
    struct block *block;
    do {
        pthread_mutex_lock(&tables_lock);
        block = beyond(device) ? remove_oldest_block(device, first) : NULL;
        pthread_mutex_unlock(&tables_lock);
        if (block)
            REPORT(free_expression, evict_removed(block), NULL);
    } while (block);
}

/* Evicts the least recently used idle blocks of a device, until HIP has freed `bytes` bytes.
 * Returns the bytes that HIP has freed. */
static size_t evict_bytes(int device, size_t bytes) {
    size_t freed = 0;
    while (freed < bytes) {
        pthread_mutex_lock(&tables_lock);
        struct block *block = remove_oldest_block(device, QUEUE_SMALL);
        pthread_mutex_unlock(&tables_lock);
        if (!block)
            break;
        freed += block->size;
        REPORT(free_expression, evict_removed(block), NULL);
    }
    return freed;
}

/* Enforces the bounds after the program has freed a block, which is now in a pool. */
static void enforce_bounds(struct block *block, int device) {
    if (load_relaxed(&care_of_frees) & CARE_IDLE)
        neighbours.note_free(device, block_size(block));
    if (!(load_relaxed(&care_of_frees) & CARE_OF_BOUNDS))
        return;
    if (UNLIKELY(!load_relaxed(&block->queued))) {
        pthread_mutex_lock(&tables_lock);
        if (block->booked)
            enter_queue(block);
        pthread_mutex_unlock(&tables_lock);
    }
    const size_t limit = cache_limits.memory_bytes[device];
    fetch_add_relaxed(&block_clock, 1); /* orders the frees */
    if (limit && block_reserved(device) > limit) {
        pthread_mutex_lock(&tables_lock);
        const bool is_over = is_over_limit(device);
        pthread_mutex_unlock(&tables_lock);
        if (is_over && device_kept(device)) {
            limit_reached();
            PROOF_STEP(blocks_beyond_the_limit_leave,
                       evict_while(is_over_limit, device, QUEUE_SMALL));
        }
    }
    if (!is_beyond_peak(device) || !device_kept(device))
        return;
    pthread_mutex_lock(&tables_lock);
    raise_recent_peak(device, asked_bytes(device) + block->size);
    pthread_mutex_unlock(&tables_lock);
    PROOF_STEP(sizes_of_the_past_leave, evict_while(is_beyond_peak, device, QUEUE_LARGE));
}

/* Records that HIP has allocated a block of this size. If a bound is exceeded, the frees evict
 * blocks from now on. If a cached block of the size `waits` for a stream, the program needs both
 * blocks in turn, so the recent peak includes both. */
static void note_reserved(int device, size_t size, bool waits) {
    const size_t limit = limit_of(device);
    const bool is_large = size > BLOCK_EXACT_UP_TO;
    if (block_reserved(device) >= MUCH_IDLE)
        fetch_or_relaxed(&care_of_frees, CARE_IDLE);
    if (is_large) {
        pthread_mutex_lock(&tables_lock);
        store_relaxed(&recent_peaks[device],
                      recent_peaks[device] - (recent_peaks[device] >> PEAK_SHIFT));
        raise_recent_peak(device, asked_bytes(device));
        if (DOUBT(waiting_block_is_needed, waits))
            raise_recent_peak(device, recent_peaks[device] + size);
        pthread_mutex_unlock(&tables_lock);
    }
    if (block_reserved(device) > limit || is_beyond_peak(device))
        fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
}

/* Returns the link of the smallest ready block in a pool's chains whose size lies between `size`
 * and `end`; NULL if there is none. Under tables_lock. */
static struct block **smallest_overflow(struct block_pool *pool, size_t size, size_t end,
                                        const struct stream *stream) {
    struct stream *holder;
    struct block **found = NULL;
    for (int set = 0; set < POOL_SETS; set++)
        for (struct block **link = &pool->overflow[set]; *link; link = &(*link)->next_overflow)
            if ((*link)->size > size && (*link)->size < end && is_ready(*link, stream, &holder)) {
                found = link;
                end = (*link)->size;
            }
    return found;
}

/* Takes a block of this size that the next work of `stream` may use. Returns NULL if no block of
 * this size is ready. If a block of this size waits for a stream, *holder is then that stream. */
static struct block *take_ready(struct block_pool *pool, size_t size, const struct stream *stream,
                                struct stream **holder) {
    const size_t set = block_set(size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *block = load_acquire(&pool->ways[set][way]);
        if (!block || block_size(block) != size || !is_ready(block, stream, holder))
            continue;
        block = block_pool_take_way(&pool->ways[set][way], size);
        if (LIKELY(block && is_ready(block, stream, holder)))
            return block;
        if (block)
            block_pool_put(block);
    }
    struct block **link = &pool->overflow[set], *block = NULL;
    if (!load_relaxed(link))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    while (*link && ((*link)->size != size || !is_ready(*link, stream, holder)))
        link = &(*link)->next_overflow;
    if (*link)
        block = take_overflow(pool, link);
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* The state of a search through several pools. */
struct search {
    int questions; /* number of questions that are left */
    bool waits;    /* a block of the size waits for a stream */
};

/* Asks HIP about a stream. Returns true if more of the stream's work is known to be done than
 * before. */
static bool query_holder(struct stream *holder, struct search *search) {
    bool asked = false;
    const bool learned = DOUBT(destroyed_stream_is_done, stream_query_unheld(holder, &asked)) ||
                         DOUBT(held_stream_is_done, stream_query_held(holder, &asked));
    search->questions -= asked;
    return learned;
}

/* Does the work of take_ready. If no block is ready, asks HIP about the stream that a block waits
 * for, and tries again. If a block is ready while another block waits, asks once, so that the other
 * block is ready when the program needs it. A search asks at most QUESTIONS_PER_SEARCH questions.
 */
static struct block *take_after_asking(struct block_pool *pool, size_t size,
                                       const struct stream *stream, struct search *search) {
    struct stream *holder = NULL, *before = NULL;
    struct block *block = take_ready(pool, size, stream, &holder);
    while (!block && holder && holder != before && search->questions > 0 &&
           query_holder(holder, search)) {
        before = holder;
        holder = NULL;
        block = take_ready(pool, size, stream, &holder);
    }
    if (block && holder && holder != before && search->questions > 0)
        (void)query_holder(holder, search);
    search->waits |= holder != NULL;
    return block;
}

/* Takes a block of this size that is ready for the next work of `stream`. If `stream` is NULL, the
 * block is ready for work on any stream. If `shared` is true, searches only the device's pool of
 * shared blocks. Otherwise searches the stream's pool, the device's pool and at most 8 pools of
 * other streams. The next search continues at the pool where this search ended. Returns NULL if no
 * block is ready. */
static struct block *search_pools(int device, size_t size, struct stream *stream, bool shared,
                                  struct search *search) {
    struct block_pool *own = stream ? load_acquire(&stream->pool) : NULL, *pool;
    struct block *block = NULL;
    if (shared)
        return PROOF_VALUE(shared_block_is_idle,
                           take_after_asking(&shared_pools[device], size, NULL, search),
                           block_pool_take_own(&shared_pools[device], size));
    if (own)
        block = take_after_asking(own, size, stream, search);
    if (!block)
        block = take_after_asking(&device_pools[device], size, stream, search);
    pool = load_acquire(&next_pool);
    for (int looked = 0; looked < POOLS_PER_SEARCH && !block; looked++) {
        if (!pool && !(pool = load_acquire(&stream_pools)))
            return NULL;
        if (pool != own && PROOF(block_is_of_the_device, pool->device == device))
            block = take_after_asking(pool, size, stream, search);
        if (!block)
            pool = pool->next;
        store_release(&next_pool, pool);
    }
    return block;
}

/* ---- larger blocks ----
 *
 * A miss may take an idle block of up to MOST_LARGER times the size. A size gets a block of its
 * own after PATIENCE allocations from larger blocks, so that a program with fixed sizes soon hits.
 * bench/simulate/blocks.py chose both numbers. */
enum { MOST_LARGER = 2, PATIENCE = 64, SIZES_COUNTED = 512 };

/* How many allocations of a size got a larger block since HIP last allocated that size. Two sizes
 * may share a count. */
static unsigned char *larger_count(int device, size_t size) {
    static unsigned char counts[MOST_DEVICES][SIZES_COUNTED];
    const int log = 63 - __builtin_clzll(size);
    return &counts[device][((size_t)log * 8 + (size >> (log - 3)) % 8) % SIZES_COUNTED];
}

/* Takes the smallest block of a pool that is larger than `size`, at most `most` bytes, and ready
 * for the next work of `stream`. Returns NULL if there is none. */
static struct block *take_larger(struct block_pool *pool, size_t size, size_t most,
                                 const struct stream *stream) {
    struct stream *holder;
    struct block **smallest = NULL, *block = NULL;
    size_t found = most + 1;
    for (int i = 0; i < POOL_SETS * POOL_WAYS; i++) {
        struct block **way = &pool->ways[i / POOL_WAYS][i % POOL_WAYS];
        const struct block *here = load_acquire(way);
        const size_t bytes = here ? block_size(here) : 0;
        if (bytes <= size || bytes >= found || !is_ready(here, stream, &holder))
            continue;
        smallest = way;
        found = bytes;
    }
    pthread_mutex_lock(&tables_lock);
    struct block **link = smallest_overflow(pool, size, found, stream);
    if (link)
        block = take_overflow(pool, link);
    pthread_mutex_unlock(&tables_lock);
    if (block || !smallest)
        return block;
    block = block_pool_take_way(smallest, found);
    if (!block || is_ready(block, stream, &holder))
        return block;
    block_pool_put(block);
    return NULL;
}

/* Takes an idle block that is larger than `size`. Searches the pools that search_pools searches. */
static struct block *search_larger(int device, size_t size, struct stream *stream, bool shared) {
    const size_t most = size * MOST_LARGER;
    unsigned char *count = larger_count(device, size);
    if (size <= BLOCK_EXACT_UP_TO || load_relaxed(count) >= PATIENCE)
        return NULL;
    struct block_pool *const own = stream && !shared ? load_acquire(&stream->pool) : NULL;
    struct block *block = own ? take_larger(own, size, most, stream) : NULL;
    if (!block)
        block = take_larger(shared ? &shared_pools[device] : &device_pools[device], size, most,
                            shared ? NULL : stream);
    struct block_pool *pool = shared ? NULL : load_acquire(&stream_pools);
    for (int looked = 0; looked < POOLS_PER_SEARCH && pool && !block; looked++, pool = pool->next)
        if (pool != own && PROOF(larger_block_is_of_the_device, pool->device == device))
            block = take_larger(pool, size, most, stream);
    if (block)
        store_relaxed(count, (unsigned char)(load_relaxed(count) + 1));
    return block;
}

/* ---- allocating ---- */

bool block_serves(uint64_t bytes, int device) {
    return cache_is_on(CACHE_MEMORY) && bytes != 0 && bytes <= SIZE_MAX / 2 &&
           device < MOST_DEVICES;
}

/* With LLVM 19 and later, LLVM's own library for CUDA allocates managed memory if host_shared is
 * set. With HIP, managed memory is pinned host memory if the device cannot move pages. hipFree
 * frees managed memory. Managed memory is coherent by default, so hipMallocManaged needs no flag
 * for that. On ROCm, a stock program gets device memory even if host_shared is set, and the host
 * may be unable to access this memory. */
static hipError_t ask_hip(void **address, size_t size, bool shared) {
    return shared ? hip.MallocManaged(address, size, hipMemAttachGlobal)
                  : hip.Malloc(address, size);
}

/* Evicts idle blocks before HIP is asked for more than the device has. If no block is idle, the
 * caller still asks HIP. */
static void make_room_ahead(int device, size_t size) {
    const size_t capacity = load_relaxed(&capacities[device]);
    const size_t wanted = block_reserved(device) + size;
    if (!capacity || wanted <= capacity || size > capacity || !device_kept(device))
        return;
    limit_reached();
    (void)evict_bytes(device, wanted - capacity);
}

/* Records HIP's answer to a request of this size, which the ledger does not include yet. */
static void note_capacity(int device, size_t size, bool has_memory) {
    const size_t capacity = load_relaxed(&capacities[device]);
    const size_t wanted = block_reserved(device) + size;
    if (has_memory ? wanted > capacity : !capacity || wanted <= capacity)
        store_relaxed(&capacities[device], has_memory ? load_relaxed(&totals[device]) : wanted - 1);
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

/* Continues after HIP had no memory. First idle blocks of the device leave, as many as the request
 * needs. Then HIP gets the exact size, then the device's remaining idle blocks leave, and at last
 * all caches release their idle objects. */
static void request_harder(struct request *request, size_t exact) {
    const int device = request->device;
    (void)device_kept(device);
    limit_reached();
    note_capacity(device, request->size, false);
    if (evict_bytes(device, request->size) && request_again(request))
        return;
    if (request->size != exact) {
        request->size = exact;
        if (request_again(request))
            return;
    }
    for (size_t more = exact; evict_bytes(device, more); more *= 2)
        if (request_again(request))
            return;
    if (DOUBT(allocation_may_succeed_with_room, caches_make_room(request->error)))
        (void)request_once(request);
    if (request->error == hipErrorOutOfMemory &&
        DOUBT(others_may_return_memory, neighbours.ask(device)))
        (void)request_again(request);
}

/* Returns the size for which the library asks HIP. The size is exact if the bytes beyond the
 * requests would exceed the limit, or a sixteenth of the device. Otherwise a program that fills the
 * device with stock could lack memory. */
static size_t size_for(int device, size_t bytes) {
    const size_t size = block_class(bytes), exact = block_round(bytes);
    const size_t known = cache_limits.memory_bytes[device];
    const size_t total = load_relaxed(&totals[device]) / 16;
    size_t limit = known ? known : options.memory_limit_bytes;
    if (total && total < limit)
        limit = total;
    return limit && DOUBT(slack_exceeds_the_limit,
                          load_relaxed(&slack_bytes[device]) + size - exact > limit)
               ? exact
               : size;
}

/* The library evicts no block for a request that exceeds the device's memory. This function does
 * not ask HIP for the size of the device's memory: a successful call would clear the error that the
 * program must see. */
static void *allocate_new(size_t bytes, int device, bool shared, bool waits, hipError_t *error) {
    const size_t total = load_relaxed(&totals[device]), exact = block_round(bytes);
    struct request request = {
        .size = size_for(device, bytes), .device = device, .shared = shared, .error = hipSuccess};
    if (!shared)
        make_room_ahead(device, request.size);
    if (UNLIKELY(!request_once(&request)) &&
        PROOF(device_can_have_so_much, !total || exact <= total) && caches_on())
        request_harder(&request, exact);
    *error = request.error;
    if (*error != hipSuccess)
        return NULL;
    const size_t size = request.size;
    note_capacity(device, size, true);
    stats_miss(CACHE_MEMORY);
    device_watch(device);
    struct block *block =
        block_insert(request.address, size, bytes, device, shared ? BLOCK_SHARED : BLOCK_LIVE);
    if (block && shared && !exclusive_hip() && /* without memory for an entry, `block` is NULL, and
                                                * mgpuMemFree calls hipFree */
        !device_memory_number(request.address, &block->number))
        block->number = 0;
    if (size > BLOCK_EXACT_UP_TO)
        store_relaxed(larger_count(device, block_class(size)), 0);
    if (UNLIKELY(is_exact(size)))
        fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    publish_event(BLOCK_ALLOCATED, request.address, size, device);
    note_reserved(device, size, waits);
    return request.address;
}

struct block_allocated block_search(uint64_t bytes, int device, struct stream *order, bool shared) {
    struct block_allocated made = {NULL, CALL_MISS, hipSuccess};
    if (!block_serves(bytes, device)) {
        made.how = CALL_BYPASS;
        made.error = hip.Malloc(&made.address, bytes);
        return made;
    }
    const size_t size = block_class(bytes);
    struct search search = {QUESTIONS_PER_SEARCH, false};
    struct block *block = search_pools(device, size, order, shared, &search);
    if (!block)
        block = search_larger(device, size, order, shared);
    if (block) {
        made.how = CALL_HIT;
        block_ask(block, bytes);
        block_hand_out(block, shared ? BLOCK_SHARED : BLOCK_LIVE);
        made.address = block_address(block);
    } else {
        block_tell_miss(block_first(), size, device, search.waits);
        made.address = allocate_new(bytes, device, shared, search.waits, &made.error);
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
    const hipError_t error = free_by_hip(around, address);
    if (shared && error == hipSuccess)
        lazy_visible(-1);
    return (struct block_freed){FREE_TO_HIP, error};
}

/* Continues block_free for an address that is not the address of a block in state BLOCK_LIVE.
 * Returns false if the free is complete; *freed is then its outcome. */
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

void block_put_done(struct block *block) {
    const int device = block->device;
    clear_fences(block);
    drop_done_fences(&device_pools[device]);
    drop_done_fences(&shared_pools[device]);
    block_pool_put(block); /* from here on another thread may take the block */
    enforce_bounds(block, device);
}

/* A function of its own: the frees of small blocks then have fewer instructions. */
static __attribute__((noinline)) void unask_freed(const struct block *block) {
    block_unask(block);
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
        unask_freed(block);
    if (UNLIKELY(!exclusive_hip() && !is_still_there(block))) {
        fetch_add_relaxed(&counts.made.other_code, 1);
        return (struct block_freed){FREE_TO_HIP, free_by_hip(block, address)};
    }
    const int device = block->device;
    const bool in_order = LIKELY(stream && stream->device == device);
    const bool care = !in_order || load_relaxed(&care_of_frees);
    if (UNLIKELY(care) && is_exact(block->size)) {
        freed.verdict = FREE_TO_HIP;
        freed.error = free_by_hip(block, address);
        return freed;
    }
    if (LIKELY(in_order)) {
        set_fence(&block->fence, stream);
        if (LIKELY(!care || add_other_fences(block))) {
            block_pool_put(block); /* from here on another thread may take the block */
            if (UNLIKELY(care))
                enforce_bounds(block, device);
            return freed;
        }
    }
    freed.verdict = FREE_WAITED;
    freed.error = PROOF_VALUE(unordered_free_waits, stream_wait_for_device(device), hipSuccess);
    if (LIKELY(!DOUBT(nothing_says_it_is_idle, freed.error != hipSuccess))) {
        block_put_done(block);
    } else {
        device_clear_error(freed.error);
        freed.error = free_by_hip(block, address);
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
        block->graph = 0;
    if (!PROOF(block_is_kept_for_its_graph, cas_acq_rel(&block->state, &state, BLOCK_GRAPH_OWNED)))
        return false;
    if (state == BLOCK_SHARED)
        lazy_visible(-1);
    return true;
}

/* ---- for statistics and the manager ---- */

struct memory_account block_ledger(int device) {
    const struct memory_account *account = &ledger[device];
    return (struct memory_account){.reserved = load_relaxed(&account->reserved),
                                   .peak_reserved = load_relaxed(&account->peak_reserved),
                                   .blocks = load_relaxed(&account->blocks)};
}

struct memory_account block_account(int device) {
    struct memory_account account = block_ledger(device);
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
            account.allocated += block_asked(block);
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
        !evict_idle(block, &error)) /* hipFree would block this and other threads */
        return hipErrorNotReady;
    return error;
}

static int trim_blocks(int device) {
    int count = 0;
    hipError_t error;
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (is_idle_on(device, block) && evict_idle(block, &error)) {
            REPORT(free_expression, error, NULL);
            count++;
        }
    return count;
}

const struct cache block_cache = {.name = "blocks",
                                  .trim = trim_blocks,
                                  .invalidate = invalidate_blocks,
                                  .thread_ends = thread_ends,
                                  .stream_begins = stream_enters,
                                  .list = list_blocks,
                                  .evict = evict_block};
