/* Decides which idle blocks leave, and when. */
#include "memory/eviction.h"
#include "driver/device.h"
#include "memory/block_pools.h"
#include "memory/block_table.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"

static const char free_expression[] = "hipFree(ptr)";

/* ---- the order in which blocks leave ----
 *
 * A queue for each device orders the blocks by their last free. The queue is a pairing heap, and a
 * list of the blocks that will enter the heap. Each node is part of a block's entry, so both
 * allocate nothing.
 *
 * A hit takes a block from a pool and puts the block back without a lock, so a queue cannot follow
 * each hit. A block therefore keeps the age that it had when it entered the queue. The block that
 * leaves the queue first may have a newer age by now, or the program may hold it. The library then
 * puts the block back, or waits for the block's next free. Each such detour is paid by one earlier
 * free, so a take costs O(log n) on average. */

enum { USES_BITS = 8, MOST_USES = (1 << USES_BITS) - 1 };

static struct block *heaps[MOST_DEVICES];
static struct block *entering[MOST_DEVICES]; /* linked by next_sibling; any thread adds blocks */
/* The bytes of the small blocks in the queue: an upper bound of the idle ones. */
static size_t small_bytes[MOST_DEVICES];

/* Returns a block's age. The age orders blocks by the time of the last free, and then by the number
 * of uses. */
static uint64_t age_of(const struct block *block) {
    const uint64_t uses = load_relaxed(&block->uses);
    return load_relaxed(&block->last_use) << USES_BITS |
           (uses < MOST_USES ? uses : (uint64_t)MOST_USES);
}

static struct block *merge(struct block *one, struct block *other) {
    if (!one || !other)
        return one ? one : other;
    struct block *const first = one->age <= other->age ? one : other;
    struct block *const second = first == one ? other : one;
    second->next_sibling = first->first_younger;
    first->first_younger = second;
    return first;
}

/* Merges the children of a removed root: first in pairs, then each pair into the heap. */
static struct block *merge_children(struct block *child) {
    struct block *pairs = NULL, *merged = NULL;
    while (child) {
        struct block *const other = child->next_sibling;
        struct block *const rest = other ? other->next_sibling : NULL;
        child->next_sibling = NULL;
        if (other)
            other->next_sibling = NULL;
        struct block *const pair = merge(child, other);
        pair->next_sibling = pairs;
        pairs = pair;
        child = rest;
    }
    while (pairs) {
        struct block *const rest = pairs->next_sibling;
        pairs->next_sibling = NULL;
        merged = merge(merged, pairs);
        pairs = rest;
    }
    return merged;
}

void eviction_enqueue(struct block *block) {
    const int device = block_device(block);
    bool queued = false;
    const size_t size = block_size(block);
    if (!cas_acq_rel(&block->queued, &queued, true))
        return;
    store_relaxed(&block->age, age_of(block));
    block->small_bytes = size > BLOCK_EXACT_UP_TO ? 0 : size;
    fetch_add_relaxed(&small_bytes[device], block->small_bytes);
    struct block *first = load_relaxed(&entering[device]);
    do
        block->next_sibling = first;
    while (!cas_acq_rel(&entering[device], &first, block));
}

/* Takes a block out of the account of a device's queue. Under tables_lock. */
static void leave_queue(struct block *block, int device) {
    fetch_sub_relaxed(&small_bytes[device], block->small_bytes);
    store_seq_cst(&block->queued, false);
}

/* Returns false if the program holds the block, which then leaves the queue until its next free.
 * The program may free the block just now, and find that the block is in the queue. Under
 * tables_lock. */
static bool stays_queued(struct block *block, int device) {
    if (load_acquire(&block->state) == BLOCK_IDLE)
        return true;
    leave_queue(block, device);
    if (load_seq_cst(&block->state) == BLOCK_IDLE)
        eviction_enqueue(block);
    return false;
}

/* Moves the blocks of the list into the heap, in the order in which they were added. Under
 * tables_lock. */
static void enter_heap(int device) {
    struct block *added = exchange_acq_rel(&entering[device], NULL), *block = NULL;
    while (added) { /* the list begins with the last one */
        struct block *const earlier = added->next_sibling;
        if (stays_queued(added, device)) {
            added->next_sibling = block;
            block = added;
        }
        added = earlier;
    }
    while (block) {
        struct block *const later = block->next_sibling;
        block->first_younger = block->next_sibling = NULL;
        heaps[device] = merge(heaps[device], block);
        block = later;
    }
}

/* Removes the block with the lowest age from a device's queue; returns NULL if the queue is empty.
 * Under tables_lock. */
static struct block *take_from_queue(int device) {
    enter_heap(device);
    struct block *const first = heaps[device];
    if (!first)
        return NULL;
    heaps[device] = merge_children(first->first_younger);
    leave_queue(first, device);
    return first;
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
 * from its free until it leaves the eviction queue, also if the program has got it again. Such
 * blocks leave the queue before a block leaves because of the limit. */

/* A free evicts large blocks beyond PEAK_PARTS / 2 of the recent peak. After each large block from
 * HIP, the recent peak falls by a 512th, unless the program holds as much. */
enum { PEAK_PARTS = 3, PEAK_SHIFT = 9 };

static size_t totals[MOST_DEVICES];       /* bytes of a device's memory; 0: unknown */
static size_t recent_peaks[MOST_DEVICES]; /* bytes of large blocks that the program has asked for */

/* An upper bound of the bytes that HIP holds and the program did not ask for. A free adds its
 * bytes, and takes tables_lock to count the bytes only if the bound exceeds the limit. */
static size_t unused_at_most[MOST_DEVICES];

/* Under tables_lock. */
static void raise_recent_peak(int device, size_t asked) {
    if (asked > recent_peaks[device])
        store_relaxed(&recent_peaks[device], asked);
}

static bool is_beyond_peak(int device) {
    return block_large_bytes(device) * 2 > load_relaxed(&recent_peaks[device]) * PEAK_PARTS;
}

size_t eviction_total(int device) {
    return load_relaxed(&totals[device]);
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
        limit = (size_t)((double)total * options.memory_limit_fraction);
    limit = limit ? limit : 1;
    cache_limits.memory_bytes[device] = limit;
    return limit;
}

/* Removes an idle block from its pool and from the table. Returns false if another thread moves the
 * block into or out of a pool just now; the block then stays. Under tables_lock. */
static bool remove_idle(struct block *block) {
    if (!PROOF(block_leaves_its_pool_first, block_unlink(block)))
        return false;
    block_remove(block);
    return true;
}

/* Calls HIP to free a block that the caller has removed. */
static hipError_t evict_removed(struct block *block) {
    stats_eviction(CACHE_MEMORY);
    return block_free_by_hip(block, block_address(block));
}

/* Removes a block, and calls HIP to free the block; *error is HIP's answer. Returns false if the
 * block is not idle. */
static bool evict_idle(struct block *block, hipError_t *error) {
    if (load_acquire(&block->state) != BLOCK_IDLE)
        return false;
    pthread_mutex_lock(&tables_lock);
    const bool removed = remove_idle(block);
    pthread_mutex_unlock(&tables_lock);
    if (removed)
        *error = evict_removed(block);
    return removed;
}

static bool is_idle_on(int device, const struct block *block) {
    return load_acquire(&block->state) == BLOCK_IDLE && of_device(device, block_device(block));
}

/* Returns an upper bound of the bytes that HIP holds and the program did not ask for. Under
 * tables_lock. */
static size_t unused_bytes(int device) {
    return load_relaxed(&small_bytes[device]) + block_large_unused(device);
}

/* Removes the least recently used idle block of a device from its pool and from the table. A block
 * that the program holds leaves the queue until its next free. Returns NULL if the device has no
 * idle block, or if at most `enough` bytes are unused then (0: never). Under tables_lock. */
static struct block *remove_oldest_block(int device, size_t enough) {
    struct block *block;
    fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    while ((block = take_from_queue(device))) {
        if (load_acquire(&block->state) != BLOCK_IDLE || !block->booked)
            continue;
        if (block->device != device || load_relaxed(&block->age) != age_of(block)) {
            eviction_enqueue(block);
            continue;
        }
        if (enough && unused_bytes(device) + block->small_bytes <= enough) {
            eviction_enqueue(block);
            return NULL;
        }
        if (remove_idle(block))
            return block;
        store_relaxed(&block->last_use, add_fetch_relaxed(&block_clock, 1));
        eviction_enqueue(block);
        return NULL;
    }
    return NULL;
}

/* Returns true if a block must leave after a free of `freed` bytes. Under tables_lock. */
static bool is_beyond_bounds(int device, size_t freed) {
    const size_t limit = cache_limits.memory_bytes[device];
    const size_t at_most = load_acquire(&unused_at_most[device]);
    enter_heap(device);
    const size_t unused = unused_bytes(device);
    const size_t asked = block_asked_bytes(device);
    /* keeps what other threads add from now on */
    fetch_add_relaxed(&unused_at_most[device], unused - at_most);
    if (limit && DOUBT(blocks_beyond_the_limit_leave, unused > limit)) {
        limit_reached();
        return true;
    }
    if (!is_beyond_peak(device))
        return false;
    raise_recent_peak(device, asked + freed);
    return DOUBT(sizes_of_the_past_leave, is_beyond_peak(device));
}

size_t eviction_of_bytes(int device, size_t bytes) {
    size_t freed = 0;
    while (freed < bytes) {
        pthread_mutex_lock(&tables_lock);
        struct block *block = remove_oldest_block(device, 0);
        pthread_mutex_unlock(&tables_lock);
        if (!block)
            break;
        freed += block->size;
        REPORT(free_expression, evict_removed(block), NULL);
    }
    return freed;
}

/* Evicts the least recently used idle blocks until the bounds hold. A block with pending work may
 * be evicted too, because hipFree waits for the device. */
static __attribute__((noinline)) void evict_beyond_bounds(int device, size_t freed) {
    struct block *block = NULL;
    do {
        pthread_mutex_lock(&tables_lock);
        if (is_beyond_bounds(device, freed))
            block = remove_oldest_block(
                device, is_beyond_peak(device) ? 0 : cache_limits.memory_bytes[device]);
        else
            block = NULL;
        pthread_mutex_unlock(&tables_lock);
        if (block)
            REPORT(free_expression, evict_removed(block), NULL);
    } while (block);
}

/* Returns true if a block may have to leave after a free of `freed` bytes. */
static bool may_be_beyond_bounds(int device, size_t freed) {
    const size_t limit = cache_limits.memory_bytes[device]; /* 0: is_beyond_bounds returns false */
    const size_t at_most = fetch_add_release(&unused_at_most[device], freed) + freed;
    return (block_reserved(device) > limit &&
            !PROOF(unused_bytes_are_within_the_limit, at_most <= limit)) ||
           is_beyond_peak(device);
}

/* Inlined into block_free, this function would cost each hit instructions. */
__attribute__((noinline)) void eviction_after_free(struct block *block, int device) {
    const unsigned care = load_relaxed(&care_of_frees);
    if (care & CARE_IDLE)
        neighbours.note_free(device, block_size(block));
    if (!(care & CARE_OF_BOUNDS))
        return;
    if (UNLIKELY(!load_relaxed(&block->queued)))
        eviction_enqueue(block);
    fetch_add_relaxed(&block_clock, 1); /* orders the frees */
    if (may_be_beyond_bounds(device, block_size(block)) && device_kept(device))
        evict_beyond_bounds(device, block_asked(block));
}

void eviction_after_new(struct block *block, int device, size_t size, bool waits) {
    const size_t limit = limit_of(device);
    const bool is_large = size > BLOCK_EXACT_UP_TO;
    if (block)
        eviction_enqueue(block);
    if (block_reserved(device) >= MUCH_IDLE)
        fetch_or_relaxed(&care_of_frees, CARE_IDLE);
    if (is_large) {
        pthread_mutex_lock(&tables_lock);
        store_relaxed(&recent_peaks[device],
                      recent_peaks[device] - (recent_peaks[device] >> PEAK_SHIFT));
        raise_recent_peak(device, block_asked_bytes(device));
        if (DOUBT(waiting_block_is_needed, waits))
            raise_recent_peak(device, recent_peaks[device] + size);
        pthread_mutex_unlock(&tables_lock);
    }
    store_relaxed(&unused_at_most[device], block_reserved(device));
    if (block_reserved(device) > limit || is_beyond_peak(device))
        fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
}

hipError_t eviction_of_block(void *address) {
    hipError_t error;
    struct block *block = block_find(address);
    if (!block || !device_kept(block_device(block)) || load_acquire(&block->state) == BLOCK_GONE)
        return hipErrorNotFound;
    if (!stream_all_quiet() ||
        !evict_idle(block, &error)) /* hipFree would block this and other threads */
        return hipErrorNotReady;
    return error;
}

/* ---- managed memory that outlives a reset ---- */

static size_t survivors; /* number of blocks */

bool eviction_has_survivors(void) {
    return load_relaxed(&survivors) != 0;
}

void eviction_note_survivors(int device) {
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (block->shared && is_idle_on(device, block) && block_unlink(block)) {
            store_relaxed(&block->survives, true);
            fetch_add_relaxed(&survivors, 1);
        }
}

void eviction_of_survivors(int device) {
    for (struct block *block = block_first(); block; block = handle_next(block)) {
        if (!of_device(device, block_device(block)) || !exchange_relaxed(&block->survives, false))
            continue;
        fetch_sub_relaxed(&survivors, 1);
        if (load_acquire(&block->state) == BLOCK_GONE && block_hip_has(block))
            (void)hip.Free(block_address(block));
    }
}

/* ---- all idle blocks ---- */

int eviction_of_all(int device) {
    int count = 0;
    hipError_t error;
    eviction_of_survivors(device);
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (is_idle_on(device, block) && evict_idle(block, &error)) {
            REPORT(free_expression, error, NULL);
            count++;
        }
    return count;
}
