/* mgpuMemAlloc, mgpuMemFree.
 *
 * Stock calls hipMalloc and hipFree, and hipFree waits for the whole device. Here a block goes back
 * to a pool of its stream and comes from there (block.h). What is not a block of the program's
 * stream, in its order, takes the careful way: it waits for the device, as stock does.
 *
 * Unless the process is the runtime's alone (exclusive.h), HIP is asked whether a block that the
 * program frees is still the one that was handed out: the program may have freed it by hipFree, and
 * its address may be a smaller one's by now. */
#include "memory.h"
#include "block.h"
#include "device.h"
#include "exclusive.h"
#include "lazy.h"
#include "manage.h"
#include "observe.h"
#include "ranges.h"
#include "refusal.h"
#include "registry.h"

#include <stdlib.h>

static struct advice out_of_memory = {
    .text = "no device memory for %llu bytes: the program holds %llu bytes on device %d, and "
            "nothing is cached any more"};
static struct advice foreign_free = {
    .text = "mgpuMemFree was given %p, which is not the start of a device allocation, or already "
            "freed"};
static struct advice freed_twice = {.text = "mgpuMemFree was given %p, which was freed before"};

static const char malloc_expression[] = "hipMalloc(&ptr, sizeBytes)";
static const char free_expression[] = "hipFree(ptr)";

/* ---- the limit ----
 *
 * While a device holds less than its limit, what is freed is kept. Beyond it the least recently
 * used blocks go back, an eighth of the limit at once, as looking for them means looking at all.
 * Where what the program holds leaves less than that eighth, nothing is kept: an allocation and a
 * free cost what stock's cost, until a quarter of the limit is free. */

static bool direct[BLOCK_DEVICES]; /* nothing is kept */

static bool is_direct(int device) {
    return __atomic_load_n(&direct[device], __ATOMIC_RELAXED);
}

static void set_direct(int device, bool value) {
    __atomic_store_n(&direct[device], value, __ATOMIC_RELAXED);
}

static size_t limit_of(int device) {
    size_t limit = cache_limits.memory_bytes[device];
    if (limit)
        return limit;
    size_t available = 0, total = 0;
    limit = options.memory_limit_bytes;
    if (!limit) {
        const hipError_t error = hip.MemGetInfo(&available, &total);
        if (error != hipSuccess)
            device_forget_error(error);
        limit = (size_t)((double)total * options.memory_limit_fraction);
    }
    limit = limit ? limit : 1;
    cache_limits.memory_bytes[device] = limit;
    return limit;
}

/* ---- giving back ---- */

/* A block that is in no pool and nobody's: unknown first, as HIP may hand its address to another
 * thread as soon as it has it. */
static hipError_t free_by_hip(void *address, size_t size, int device) {
    const hipError_t error = hip.Free(address);
    observe(OBSERVED_BLOCK_FREED, address, size, device);
    return error;
}

static bool give_back(struct block *block) {
    void *address = (void *)(uintptr_t)block->handle.key;
    if (!block_retire(block))
        return false;
    stats_eviction(CACHE_MEMORY);
    REPORT(free_expression, free_by_hip(address, block->size, block->device), NULL);
    return true;
}

/* hipFree waits for the device, so a block whose stream is still at work may go too. */
int memory_give_back(int device) {
    int count = 0;
    for (struct block *block = block_first(); block; block = (struct block *)block->handle.next)
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) == BLOCK_CACHED &&
            (device < 0 || block_device(block) == device))
            count += give_back(block);
    return count;
}

/* A cached block as it was when it was listed: sorting must not see it change. */
struct candidate {
    struct block *block;
    uint64_t last_use, uses, entered;
};

static int by_last_use(const void *a, const void *b) {
    const struct candidate *left = a, *right = b;
    if (left->last_use != right->last_use)
        return left->last_use > right->last_use ? 1 : -1;
    if (left->uses != right->uses) /* both since the same miss */
        return left->uses > right->uses ? 1 : -1;
    return left->entered > right->entered ? 1 : -1;
}

/* Lists up to `room` cached blocks of a device; returns how many there are. */
static size_t list_cached(int device, struct candidate *out, size_t room) {
    size_t count = 0;
    for (struct block *block = block_first(); block; block = (struct block *)block->handle.next) {
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) != BLOCK_CACHED ||
            block_device(block) != device)
            continue;
        if (count < room)
            out[count] =
                (struct candidate){block, __atomic_load_n(&block->last_use, __ATOMIC_RELAXED),
                                   __atomic_load_n(&block->uses, __ATOMIC_RELAXED),
                                   __atomic_load_n(&block->entered, __ATOMIC_RELAXED)};
        count++;
    }
    return count;
}

/* Gives back the least recently used blocks until the device holds no more than `keep`. */
static void give_back_oldest(int device, size_t keep) {
    const size_t room = list_cached(device, NULL, 0);
    struct candidate *cached = malloc((room + 1) * sizeof *cached);
    const size_t found = cached ? list_cached(device, cached, room) : 0;
    const size_t count = found < room ? found : room; /* others may have added some meanwhile */
    if (count)
        qsort(cached, count, sizeof *cached, by_last_use);
    for (size_t i = 0; i < count && block_reserved(device) > keep; i++)
        (void)give_back(cached[i].block);
    free(cached);
}

static __attribute__((noinline)) void trim(int device, size_t limit) {
    const size_t keep = limit - limit / 8;
    if (device_kept(device))
        give_back_oldest(device, keep);
    if (block_reserved(device) > keep)
        set_direct(device, true);
}

size_t memory_held(size_t *bytes) {
    size_t count = 0;
    *bytes = 0;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) != BLOCK_LIVE)
            continue;
        count++;
        *bytes += block_size(block);
    }
    return count;
}

/* ---- mgpuMemAlloc ---- */

static void *report_no_memory(hipError_t error, uint64_t bytes, int device) {
    report_failure(malloc_expression, error, &out_of_memory, (unsigned long long)bytes,
                   (unsigned long long)(device < BLOCK_DEVICES ? block_reserved(device) : 0),
                   device);
    return NULL; /* stock returns an uninitialised pointer */
}

static void *allocate_new(uint64_t bytes, size_t size, int device) {
    void *address = NULL;
    stats_miss(CACHE_MEMORY);
    const hipError_t error = RETRY(hip.Malloc(&address, size));
    if (error != hipSuccess)
        return report_no_memory(error, bytes, device);
    device_watch(device);
    (void)block_enter(address, size, device); /* without memory for the entry: freed by hipFree */
    observe(OBSERVED_BLOCK_ALLOCATED, address, size, device);
    const size_t limit = limit_of(device);
    if (block_reserved(device) > limit && !is_direct(device))
        trim(device, limit);
    return address;
}

/* What host and device see at once. Managed memory, as LLVM's CUDA runtime has it since 19: HIP
 * has it for every device (pinned host memory where pages cannot move), hipFree takes it back, and
 * it is coherent without a flag. Stock ROCm hands out device memory here, which the host may not be
 * able to touch. */
static void *allocate_shared(uint64_t bytes) {
    void *address = NULL;
    const hipError_t error = RETRY(hip.MallocManaged(&address, bytes, hipMemAttachGlobal));
    stats_bypass(CACHE_MEMORY);
    if (error != hipSuccess)
        return report_no_memory(error, bytes, hip_current_device());
    pthread_mutex_lock(&registry_lock);
    ranges_add((uintptr_t)address, bytes, RANGE_MANAGED);
    pthread_mutex_unlock(&registry_lock);
    lazy_visible(1);
    return address;
}

static void *allocate_as_stock(uint64_t bytes) {
    void *address = NULL;
    stats_bypass(CACHE_MEMORY);
    const hipError_t error = hip.Malloc(&address, bytes);
    return error == hipSuccess ? address : report_no_memory(error, bytes, hip_current_device());
}

static __attribute__((noinline)) void *allocate_slow(uint64_t bytes, struct stream *stream,
                                                     bool shared) {
    const int device = hip_current_device();
    if (!options.cache_on || bytes == 0 || bytes > SIZE_MAX - BLOCK_GRAIN ||
        device >= BLOCK_DEVICES)
        return allocate_as_stock(bytes);
    if (shared)
        return allocate_shared(bytes);
    const size_t size = block_round(bytes);
    struct block *block = is_direct(device) ? NULL : block_search(device, size, stream);
    if (block && !device_kept(device))
        block = NULL;
    return block ? (void *)block->handle.key : allocate_new(bytes, size, device);
}

/* A stream whose order the pool may rely on; NULL otherwise. */
static struct stream *ordering(const struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(stream && stream_is_live(stream) && stream->device < BLOCK_DEVICES) ? stream
                                                                                      : NULL;
}

static void *allocate(uint64_t bytes, hipStream_t handle, bool shared) {
    struct stream *stream = ordering(thread_get(), handle);
    const int device = hip_current_device();
    struct block_pool *pool = NULL;
    if (LIKELY(stream && stream->device == device))
        pool = __atomic_load_n(&stream->pool, __ATOMIC_ACQUIRE);
    else if (!shared && device < BLOCK_DEVICES)
        pool = block_device_pool(device);
    struct block *block = LIKELY(pool) ? block_take(pool, block_round(bytes)) : NULL;
    if (LIKELY(block && device_kept(device)))
        return (void *)block->handle.key;
    return allocate_slow(bytes, stream && stream->device == device ? stream : NULL, shared);
}

static void count(const struct block *block, int sign) {
    if (block)
        block_count(block->device, sign * (ptrdiff_t)block->size);
}

void *impl_mgpuMemAlloc(uint64_t sizeBytes, hipStream_t stream, bool late_host_shared) {
    /* LLVM 17 and older leave garbage in the flag, but never pass a null stream. */
    void *address = allocate(sizeBytes, stream, late_host_shared && !stream);
    if (UNLIKELY(runtime_counting()))
        count(block_find(address), 1);
    return address;
}

/* ---- mgpuMemFree ---- */

/* An address that is no block's start: managed memory, the program's own, or a mistake. */
static void free_foreign(void *address) {
    struct block *around = options.cache_on && address ? block_around(address) : NULL;
    if (around && around->state == BLOCK_CACHED && device_kept(around->device)) {
        REPORT(free_expression, refusal_of_block(), &freed_twice, address);
        return;
    }
    const bool managed = ranges_find(address, 1) == RANGE_MANAGED;
    if (around) /* HIP 5.2.3 takes an address inside a block for the block */
        block_forget(around);
    pthread_mutex_lock(&registry_lock);
    ranges_remove((uintptr_t)address); /* before HIP can hand it out again */
    pthread_mutex_unlock(&registry_lock);
    const hipError_t error = hip.Free(address);
    if (error != hipSuccess)
        report_failure(free_expression, error, &foreign_free, address);
    else if (managed)
        lazy_visible(-1);
}

/* Of several threads here each waits by itself: one that finds another waiting knows nothing yet.
 */
hipError_t memory_wait_for_device(int device) {
    uintptr_t token = (uintptr_t)thread_get();
    if (exclusive_hip() && !stream_any_busy() &&
        __atomic_load_n(&stream_others, __ATOMIC_ACQUIRE) == OTHERS_IDLE)
        return hipSuccess;
    const int current = hip_current_device();
    hipError_t error = current != device ? hip.SetDevice(device) : hipSuccess;
    if (hip_device_count == 1)
        __atomic_store_n(&stream_others, token, __ATOMIC_SEQ_CST);
    if (error == hipSuccess)
        error = hip.DeviceSynchronize();
    __atomic_compare_exchange_n(&stream_others, &token,
                                error == hipSuccess ? OTHERS_IDLE : OTHERS_BUSY, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    if (current != device)
        (void)hip.SetDevice(current);
    return error;
}

/* A block that is not kept: HIP takes it as stock gives it. */
static __attribute__((noinline)) void free_now(struct block *block) {
    void *address = (void *)(uintptr_t)block->handle.key;
    const size_t size = block->size;
    const int device = block->device;
    block_forget(block);
    REPORT(free_expression, free_by_hip(address, size, device), &foreign_free, address);
    const size_t limit = limit_of(device);
    if (is_direct(device) && block_reserved(device) < limit - limit / 4)
        set_direct(device, false);
}

/* No stream says when the block is free: the null stream, one that is gone, one of another device,
 * one of the program's own that the table does not know. */
static __attribute__((noinline)) void free_unordered(struct block *block) {
    REPORT(free_expression, memory_wait_for_device(block->device), NULL);
    (void)block_put(block, NULL); /* a device's pool is always there */
}

void impl_mgpuMemFree(void *ptr, hipStream_t handle) {
    struct stream *stream = ordering(thread_get(), handle);
    struct block *block = block_find(ptr);
    int live = BLOCK_LIVE;
    if (UNLIKELY(!block || block->state == BLOCK_GONE)) {
        if (!runtime_leaves(block))
            free_foreign(ptr);
        return;
    }
    if (UNLIKELY(!__atomic_compare_exchange_n(&block->state, &live, BLOCK_CACHED, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))) {
        if (device_kept(block->device))
            REPORT(free_expression, refusal_of_block(), &freed_twice, ptr);
        else
            free_foreign(ptr);
        return;
    }
    if (UNLIKELY(runtime_counting()))
        count(block, -1);
    if (UNLIKELY(is_direct(block->device) || !(exclusive_hip() || block_confirm(block))))
        free_now(block);
    else if (UNLIKELY(!stream || stream->device != block->device))
        free_unordered(block);
    else if (UNLIKELY(!block_put(block, stream)))
        free_now(block);
}

/* ---- for the manager ---- */

size_t block_list(struct cached *out, size_t room) {
    size_t count = 0;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        const int state = __atomic_load_n(&block->state, __ATOMIC_ACQUIRE);
        if (state == BLOCK_GONE)
            continue;
        if (count < room)
            out[count] = (struct cached){(void *)(uintptr_t)block->handle.key, block_size(block),
                                         __atomic_load_n(&block->uses, __ATOMIC_RELAXED),
                                         block_device(block), state == BLOCK_LIVE};
        count++;
    }
    return count;
}

hipError_t block_evict(void *address) {
    struct block *block = block_find(address);
    if (!block || !device_kept(block_device(block)) ||
        __atomic_load_n(&block->state, __ATOMIC_ACQUIRE) == BLOCK_GONE)
        return hipErrorNotFound;
    if (!block_retire(block))
        return hipErrorNotReady;
    stats_eviction(CACHE_MEMORY);
    return free_by_hip(address, block->size, block->device);
}
