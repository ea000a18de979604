/* Asks HIP for new blocks, and makes room for them. */
#include "memory/block_requests.h"
#include "driver/device.h"
#include "memory/block_pools.h"
#include "memory/block_table.h"
#include "memory/eviction.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"

static size_t capacities[MOST_DEVICES]; /* the most reserved bytes for which HIP has memory, as far
                                         * as the library knows; 0: unknown */

/* With LLVM 19 and later, LLVM's own library for CUDA allocates managed memory if host_shared is
 * set. With HIP, managed memory is pinned host memory if the device cannot move pages. hipFree
 * frees managed memory. Managed memory is coherent by default, so hipMallocManaged needs no flag
 * for that. On ROCm, a stock program gets device memory even if host_shared is set, and the host
 * may be unable to access this memory. */
static hipError_t ask_hip(void **address, size_t size, bool shared) {
    return shared ? hip.MallocManaged(address, size, hipMemAttachGlobal)
                  : hip.Malloc(address, size);
}

/* Returns true if HIP says that the current device has no memory for a request of this size. */
static bool hip_lacks_memory(size_t size) {
    size_t available = 0, total = 0;
    return device_answered(hip.MemGetInfo(&available, &total)) && available < size;
}

/* Evicts idle blocks before HIP is asked for more than the device has. If no block is idle, the
 * caller still asks HIP. hipFree waits for the device, where stock's hipMalloc goes on. So nothing
 * is evicted while HIP has memory, for example because another process has freed some. */
static void make_room_ahead(int device, size_t size) {
    const size_t capacity = load_relaxed(&capacities[device]);
    const size_t wanted = block_reserved(device) + size;
    if (!capacity || wanted <= capacity || size > capacity || !device_kept(device) ||
        !PROOF(memory_is_short_now, hip_lacks_memory(size)))
        return;
    limit_reached();
    (void)eviction_of_bytes(device, wanted - capacity);
}

/* Records HIP's answer to a request of this size, which the ledger does not include yet. */
static void note_capacity(int device, size_t size, bool has_memory) {
    const size_t capacity = load_relaxed(&capacities[device]);
    const size_t wanted = block_reserved(device) + size;
    if (has_memory ? wanted > capacity : !capacity || wanted <= capacity)
        store_relaxed(&capacities[device], has_memory ? eviction_total(device) : wanted - 1);
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
 * needs. Then HIP gets the exact size, then the device's remaining idle blocks leave, and then all
 * caches release their idle objects. HIP frees memory only by hipFree, which waits for the device.
 * Without this wait, an allocation would fail that succeeds with stock. AMD's HIP 5.2.3 has freed
 * memory only once it knows that the streams' earlier work is done. So the library asks about the
 * streams, and then for memory. */
static void request_harder(struct request *request, size_t exact) {
    const int device = request->device;
    (void)device_kept(device);
    limit_reached();
    note_capacity(device, request->size, false);
    if (eviction_of_bytes(device, request->size) && request_again(request))
        return;
    if (request->size != exact) {
        request->size = exact;
        if (request_again(request))
            return;
    }
    for (size_t more = exact; eviction_of_bytes(device, more); more *= 2)
        if (request_again(request))
            return;
    if (DOUBT(allocation_may_succeed_with_room, caches_make_room(request->error)))
        (void)request_once(request);
    if (request->error == hipErrorOutOfMemory &&
        DOUBT(freed_memory_comes_late, stream_query_all(device)))
        (void)request_again(request);
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
    const size_t total = eviction_total(device) / 16;
    size_t limit = known ? known : options.memory_limit_bytes;
    if (total && total < limit)
        limit = total;
    return limit && DOUBT(slack_exceeds_the_limit, block_slack_bytes(device) + size - exact > limit)
               ? exact
               : size;
}

/* The function does not ask HIP for the size of the device's memory: a successful call would clear
 * the error that the program must see. */
void *block_request(size_t bytes, int device, bool shared, bool waits, hipError_t *error) {
    const size_t total = eviction_total(device), exact = block_round(bytes);
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
    if (block && !exclusive_hip()) /* without memory for an entry, `block` is NULL, and mgpuMemFree
                                    * calls hipFree */
        block_ask_number(block);
    block_expect_own(size, device);
    if (UNLIKELY(DOUBT(block_serves_no_class, block_size_is_exact(size))))
        fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    eviction_after_new(block, device, size, waits);
    return request.address;
}
