/* mgpuMemAlloc, mgpuMemFree.
 *
 * The stock functions call hipMalloc and hipFree, and hipFree waits for the whole device. In this
 * library a freed block goes to the pool of its stream, and the next allocation reuses the block
 * (blocks.h).
 *
 * If other code in the process may call HIP (exclusive.h), the library asks HIP whether a freed
 * block still exists. The program may have freed the block by hipFree earlier, and HIP may then
 * have allocated a smaller block at the same address. */
#include "driver/refusal.h"
#include "memory/blocks.h"

static struct advice out_of_memory = {
    .text = "no device memory for %llu bytes: the program holds %llu bytes on device %d, and "
            "nothing is cached any more"};
static struct advice out_of_uncounted_memory = {.text =
                                                    "no device memory for %llu bytes on device %d"};
static struct advice foreign_free = {.text = "mgpuMemFree was given %p, which is not the start of "
                                             "a device allocation, or was freed before"};
static struct advice freed_twice = {.text = "mgpuMemFree was given %p, which was freed before"};

static const char malloc_expression[] = "hipMalloc(&ptr, sizeBytes)";
static const char free_expression[] = "hipFree(ptr)";

/* ---- mgpuMemAlloc ---- */

/* Returns false if the program has registered no handler. The handler may allocate, and may free
 * any memory. */
static bool ask_for_memory(uint64_t bytes) {
    static __thread bool asking;
    void (*const make_room)(int, size_t) = load_acquire(&asked_for_memory);
    if (!make_room || DOUBT(allocation_is_of_who_is_asked, asking))
        return false;
    asking = true;
    make_room(hip_current_device(), bytes);
    asking = false;
    return true;
}

/* Reports that an allocation failed. The library counts the bytes that the program holds only if it
 * caches the device's memory. */
static void report_refusal(hipError_t error, uint64_t bytes, int device) {
    const unsigned long long wanted = bytes;
    const bool is_short = PROOF(memory_was_refused, error == hipErrorOutOfMemory);
    if (is_short && block_serves(bytes, device)) {
        struct memory_account accounts[MOST_DEVICES] = {0};
        block_count_held(accounts);
        report_failure(malloc_expression, error, &out_of_memory, wanted,
                       (unsigned long long)accounts[device].allocated, device);
    } else {
        report_failure(malloc_expression, error, is_short ? &out_of_uncounted_memory : NULL, wanted,
                       device);
    }
}

/* Allocates if the stream's pool has no block for the request. */
static __attribute__((noinline)) void *allocate_slow(uint64_t bytes, hipStream_t handle,
                                                     bool host_shared) {
    /* LLVM 17 and older do not pass host_shared, so its value is then garbage. These releases never
     * pass a null stream. */
    const bool shared = host_shared && PROOF(flag_was_passed, !handle);
    void *address;
    hipError_t error;
    int device; /* the memory's device; the library reads it before the allocation, because a query
                 * after a failure would clear HIP's error */
    for (bool again = false;; again = true) {
        device = hip_current_device();
        if (again)
            (void)device_kept(device);
        struct stream *stream = block_order(thread_get(), handle);
        address = block_search(bytes, device, stream && stream->device == device ? stream : NULL,
                               shared, &error);
        if (LIKELY(error != hipErrorOutOfMemory) || again || !ask_for_memory(bytes))
            break;
        (void)hip.GetLastError();
    }
    if (UNLIKELY(error != hipSuccess))
        report_refusal(error, bytes, device);
    return address; /* after a failure stock returns an uninitialised pointer */
}

static inline __attribute__((always_inline)) void *allocate(uint64_t bytes, hipStream_t handle,
                                                            bool host_shared) {
    struct stream *order = block_order(thread_get(), handle);
    struct block *block = block_reuse(bytes, hip_current_device(), order);
    return LIKELY(block) ? block_address(block) : allocate_slow(bytes, handle, host_shared);
}

/* Allocates a block whose size is a class. */
static __attribute__((noinline)) void *allocate_large(uint64_t bytes, hipStream_t handle,
                                                      bool host_shared) {
    return allocate(bytes, handle, host_shared);
}

void *impl_mgpuMemAlloc(uint64_t sizeBytes, hipStream_t handle, bool late_host_shared) {
    return LIKELY(sizeBytes <= BLOCK_EXACT_UP_TO)
               ? allocate(sizeBytes, handle, late_host_shared)
               : allocate_large(sizeBytes, handle, late_host_shared);
}

/* ---- mgpuMemFree ---- */

void impl_mgpuMemFree(void *ptr, hipStream_t stream) {
    const struct block_freed freed = block_free(ptr, block_order(thread_get(), stream));
    if (UNLIKELY(freed.verdict == FREE_TWICE))
        REPORT(free_expression, refusal_of_block(), &freed_twice, ptr);
    else
        REPORT(free_expression, freed.error, freed.verdict == FREE_TO_HIP ? &foreign_free : NULL,
               ptr);
}
