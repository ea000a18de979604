/* mgpuMemAlloc, mgpuMemFree.
 *
 * Stock calls hipMalloc and hipFree, and hipFree waits for the whole device. Here a block goes back
 * to a pool of its stream and comes from there (block.h). What is not a block of the program's
 * stream, in its order, takes the careful way: it waits for the device, as stock does. */
#include "memory.h"
#include "block.h"
#include "exclusive.h"
#include "lazy.h"
#include "python.h"
#include "ranges.h"
#include "registry.h"

static struct advice out_of_memory = {
    .text = "no device memory for %llu bytes: the program holds %llu bytes on device %d, and "
            "nothing is cached any more"};
static struct advice foreign_free = {
    .text = "mgpuMemFree was given %p, which is not the begin of a block of device memory, or was "
            "freed before"};
static struct advice freed_twice = {.text = "mgpuMemFree was given %p, which was freed before"};

static const char malloc_expression[] = "hipMalloc(&ptr, sizeBytes)";
static const char free_expression[] = "hipFree(ptr)";

/* Bytes that may be held from HIP on each device before what is freed goes back; 0: not asked for
 * yet. */
static size_t limits[BLOCK_DEVICES];
static bool over_limit; /* of some device */

/* ---- the limit ---- */

static size_t limit_of(int device) {
    size_t limit = __atomic_load_n(&limits[device], __ATOMIC_RELAXED);
    if (limit)
        return limit;
    size_t available = 0, total = 0;
    limit = options.memory_limit_bytes;
    if (!limit && hip.MemGetInfo(&available, &total) == hipSuccess)
        limit = (size_t)((double)total * options.memory_limit_fraction);
    limit = limit ? limit : 1;
    __atomic_store_n(&limits[device], limit, __ATOMIC_RELAXED);
    return limit;
}

static void note_limit(void) {
    bool over = false;
    for (int device = 0; device < BLOCK_DEVICES; device++)
        over = over || (limits[device] && block_reserved(device) > limits[device]);
    __atomic_store_n(&over_limit, over, __ATOMIC_RELAXED);
}

size_t memory_excess(int device) {
    const size_t reserved = block_reserved(device), limit = limit_of(device);
    return reserved > limit ? reserved - limit : 0;
}

/* ---- giving back ---- */

static bool give_back(struct block *block) {
    if (!block_retire(block))
        return false;
    stats_eviction(CACHE_MEMORY);
    REPORT(free_expression, policy_serving()->memory_free((void *)block->handle.key), NULL);
    return true;
}

/* hipFree waits for the device, so a block whose stream is still at work may go too. */
int memory_give_back(int device) {
    int count = 0;
    for (struct block *block = block_first(); block; block = (struct block *)block->handle.next)
        if (block->device == device || device < 0)
            count += give_back(block);
    note_limit();
    return count;
}

void memory_give_back_some(int device, size_t excess) {
    size_t freed = 0;
    for (struct block *block = block_first(); block && freed < excess;
         block = (struct block *)block->handle.next) {
        const size_t size = block->size;
        if (block->device == device && give_back(block))
            freed += size;
    }
}

static __attribute__((noinline)) void trim(int device) {
    const size_t excess = memory_excess(device);
    if (excess)
        policy_serving()->memory_trim(device, excess);
    note_limit();
}

size_t memory_held(size_t *bytes) {
    size_t count = 0;
    *bytes = 0;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) != BLOCK_LIVE)
            continue;
        count++;
        *bytes += block->size;
    }
    return count;
}

/* ---- mgpuMemAlloc ---- */

/* hipMalloc, if need be after giving back all that is cached on the device, on all streams. */
static hipError_t get_from_hip(int device, size_t size, void **address) {
    hipError_t error = policy_get()->memory_alloc(device, size, address);
    if (error == hipErrorOutOfMemory && memory_give_back(device)) {
        (void)hip.GetLastError(); /* the program's call is about to succeed */
        error = policy_get()->memory_alloc(device, size, address);
    }
    return error;
}

static void *report_no_memory(hipError_t error, uint64_t bytes, int device) {
    report_failure(malloc_expression, error, &out_of_memory, (unsigned long long)bytes,
                   (unsigned long long)block_reserved(device), device);
    return NULL; /* stock returns an uninitialised pointer */
}

static void *allocate_new(uint64_t bytes, size_t size, int device) {
    void *address = NULL;
    stats_miss(CACHE_MEMORY);
    const hipError_t error = get_from_hip(device, size, &address);
    if (error != hipSuccess)
        return report_no_memory(error, bytes, device);
    (void)block_enter(address, size, device); /* without memory for the entry: freed by hipFree */
    if (memory_excess(device))
        trim(device);
    return address;
}

/* What host and device see at once. Managed memory, as LLVM's CUDA runtime has it since 19: HIP
 * has it for every device (pinned host memory where pages cannot move), hipFree takes it back, and
 * it is coherent without a flag. Stock ROCm hands out device memory here, which the host may not be
 * able to touch. */
static void *allocate_shared(uint64_t bytes) {
    void *address = NULL;
    const hipError_t error = hip.MallocManaged(&address, bytes, hipMemAttachGlobal);
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
    struct block *block = block_search(device, size, stream);
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
    if (LIKELY(block))
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

/* An address that is no block's begin: managed memory, the program's own, or a mistake. */
static void free_foreign(void *address) {
    struct block *around = options.cache_on ? block_around(address) : NULL;
    if (around && around->state == BLOCK_CACHED) {
        report_failure(free_expression, hipErrorInvalidValue, &freed_twice, address);
        return;
    }
    const bool managed = ranges_find(address, 1) == RANGE_MANAGED;
    const hipError_t error = hip.Free(address);
    if (error != hipSuccess) {
        report_failure(free_expression, error, &foreign_free, address);
        return;
    }
    if (around) /* HIP 5.2.3 takes an address inside a block for the block */
        block_forget(around);
    pthread_mutex_lock(&registry_lock);
    ranges_remove((uintptr_t)address);
    pthread_mutex_unlock(&registry_lock);
    if (managed)
        lazy_visible(-1);
}

/* Waits for all work on the block's device, unless it is known that there is none. */
static hipError_t wait_for_device(int device) {
    if (!stream_any_busy() && !stream_others_busy && exclusive_hip())
        return hipSuccess;
    const int current = hip_current_device();
    hipError_t error = current != device ? hip.SetDevice(device) : hipSuccess;
    if (error == hipSuccess && hip_device_count == 1)
        stream_others_busy = false; /* before the wait: what comes meanwhile sets it again */
    if (error == hipSuccess && (error = hip.DeviceSynchronize()) != hipSuccess)
        stream_others_busy = true;
    if (current != device)
        (void)hip.SetDevice(current);
    return error;
}

/* No stream says when the block is free: the null stream, one that is gone, one of another device,
 * one of the program's own that the table does not know. */
static __attribute__((noinline)) void free_unordered(struct block *block) {
    REPORT(free_expression, wait_for_device(block->device), NULL);
    block_put(block, NULL);
}

void impl_mgpuMemFree(void *ptr, hipStream_t handle) {
    struct stream *stream = ordering(thread_get(), handle);
    struct block *block = block_find(ptr);
    int live = BLOCK_LIVE;
    if (UNLIKELY(!block || block->state == BLOCK_GONE)) {
        free_foreign(ptr);
        return;
    }
    if (UNLIKELY(!__atomic_compare_exchange_n(&block->state, &live, BLOCK_CACHED, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))) {
        report_failure(free_expression, hipErrorInvalidValue, &freed_twice, ptr);
        return;
    }
    if (UNLIKELY(runtime_counting()))
        count(block, -1);
    if (LIKELY(stream && stream->device == block->device))
        block_put(block, stream);
    else
        free_unordered(block);
    if (UNLIKELY(__atomic_load_n(&over_limit, __ATOMIC_RELAXED)))
        trim(block->device);
}
