/* Decides which idle blocks leave, and when. */
#include "memory/eviction.h"
#include "driver/device.h"
#include "memory/block_pools.h"
#include "memory/block_table.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"

static const char free_expression[] = "hipFree(ptr)";

/* ---- which blocks leave ----
 *
 * Two bounds apply to the bytes that HIP holds and the program did not ask for. These are idle
 * blocks, and the part of a held block beyond the request. The first bound is the limit. The second
 * bound is a multiple of the most bytes that the program has recently held, so old sizes leave.
 * Blocks leave when the program frees a block, because a free waits for the device with stock too.
 * An allocation evicts blocks only if the device has no memory.
 *
 * The library knows the bytes of large blocks that the program holds. A small block counts as idle
 * from its free until it leaves the index, also if the program has got it again. */

/* While the large blocks have more than PEAK_PARTS / 2 of the recent peak, a free evicts old blocks
 * of any size. After each large block from HIP, the recent peak falls by a 512th, unless the
 * program holds as much. */
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
    return load_relaxed(&block_large_bytes[device]) * 2 >
           load_relaxed(&recent_peaks[device]) * PEAK_PARTS;
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
    stats_eviction(CACHE_MEMORY);
    return true;
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
        *error = hip.Free(block_address(block));
    return removed;
}

static bool is_idle_on(int device, const struct block *block) {
    return load_acquire(&block->state) == BLOCK_IDLE && of_device(device, block_device(block));
}

/* Returns an upper bound of the bytes that HIP holds and the program did not ask for. Under
 * tables_lock. */
static size_t unused_bytes(int device) {
    return block_pool_small_bytes[device] + block_large_unused(device);
}

enum bound { NO_BOUND, THE_LIMIT, THE_PEAK };

/* Counts the unused bytes of a device. Returns the bound because of which a block must leave after
 * a free of `freed` bytes. Under tables_lock. */
static enum bound exceeded_bound(int device, size_t freed) {
    const size_t limit = cache_limits.memory_bytes[device];
    const size_t at_most = load_acquire(&unused_at_most[device]);
    const size_t unused = unused_bytes(device);
    const size_t asked = block_asked_bytes(device);
    /* keeps what other threads add from now on */
    fetch_add_relaxed(&unused_at_most[device], unused - at_most);
    if (limit && DOUBT(blocks_beyond_the_limit_leave, unused > limit))
        return THE_LIMIT;
    if (!is_beyond_peak(device))
        return NO_BOUND;
    raise_recent_peak(device, asked + freed);
    return DOUBT(sizes_of_the_past_leave, is_beyond_peak(device)) ? THE_PEAK : NO_BOUND;
}

/* Removes the least recently used of 32 idle blocks of a device from its pool and from the table.
 * Returns NULL if the device has no idle block, or if another thread moves the block just now.
 * Under tables_lock. */
static struct block *remove_old_block(int device) {
    struct block *const block = block_pool_oldest(device);
    fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    return block && remove_idle(block) ? block : NULL;
}

/* Removes a block that must leave after a free of `freed` bytes; returns NULL if there is none. The
 * search for this block removes held blocks from the index, which count as unused until then. So
 * the function tests the bounds once more. Under tables_lock. */
static struct block *remove_beyond_bounds(int device, size_t freed) {
    if (exceeded_bound(device, freed) == NO_BOUND)
        return NULL;
    struct block *const block = block_pool_oldest(device);
    const enum bound bound = exceeded_bound(device, freed);
    if (bound == THE_LIMIT)
        limit_reached();
    return block && bound != NO_BOUND && remove_idle(block) ? block : NULL;
}

size_t eviction_of_bytes(int device, size_t bytes) {
    size_t freed = 0;
    while (freed < bytes) {
        pthread_mutex_lock(&tables_lock);
        struct block *block = remove_old_block(device);
        pthread_mutex_unlock(&tables_lock);
        if (!block)
            break;
        freed += block->size;
        REPORT(free_expression, hip.Free(block_address(block)), NULL);
    }
    return freed;
}

/* Evicts old idle blocks until the bounds hold. A block with pending work may be evicted too,
 * because hipFree waits for the device. */
static __attribute__((noinline)) void evict_beyond_bounds(int device, size_t freed) {
    struct block *block;
    do {
        pthread_mutex_lock(&tables_lock);
        block = remove_beyond_bounds(device, freed);
        pthread_mutex_unlock(&tables_lock);
        const hipError_t error = block ? hip.Free(block_address(block)) : hipSuccess;
        REPORT(free_expression, error, NULL);
    } while (block);
}

/* Returns true if a block may have to leave after a free of `freed` bytes. */
static bool may_be_beyond_bounds(int device, size_t freed) {
    const size_t limit = cache_limits.memory_bytes[device]; /* 0: unknown */
    const size_t at_most = fetch_add_release(&unused_at_most[device], freed) + freed;
    return (block_reserved(device) > limit &&
            !PROOF(unused_bytes_are_within_the_limit, at_most <= limit)) ||
           is_beyond_peak(device);
}

/* Inlined into block_free, this function would cost each hit instructions. */
__attribute__((noinline)) void eviction_after_free(struct block *block, int device) {
    const unsigned care = load_relaxed(&care_of_frees);
    if (care & CARE_WANTED)
        neighbours.note_free(device);
    if (!(care & CARE_OF_BOUNDS))
        return;
    fetch_add_relaxed(&block_clock, 1); /* orders the frees */
    if (may_be_beyond_bounds(device, block_size(block)) && device_kept(device))
        evict_beyond_bounds(device, block_asked(block));
}

void eviction_after_new(int device, size_t size, bool waits) {
    const size_t limit = limit_of(device);
    const bool is_large = size > BLOCK_EXACT_UP_TO;
    if (block_reserved(device) >= MUCH_MEMORY)
        neighbours.note_memory();
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

/* ---- all idle blocks ---- */

int eviction_of_all(int device) {
    int count = 0;
    hipError_t error;
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (is_idle_on(device, block) && evict_idle(block, &error)) {
            REPORT(free_expression, error, NULL);
            count++;
        }
    return count;
}
