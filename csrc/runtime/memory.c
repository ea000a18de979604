/* mgpuMemAlloc, mgpuMemFree, mgpuMemcpy, mgpuMemset16, mgpuMemset32: HIP's calls as stock makes
 * them. */
#include "stream.h"

static struct advice out_of_memory = {.text = "no device memory for %llu bytes"};
static struct advice foreign_free = {
    .text = "mgpuMemFree was given %p, which is not the begin of a block of device memory, or was "
            "freed before"};
static struct advice bad_copy = {
    .text = "copy of %llu bytes from %p to %p: check that both ends are allocated as long"};

static struct advice bad_fill = {
    .text =
        "fill of %llu elements of %d bytes at %p: this must be device memory, allocated as long"};

void *impl_mgpuMemAlloc(uint64_t sizeBytes, hipStream_t stream, bool late_host_shared) {
    (void)stream;
    (void)late_host_shared; /* garbage before LLVM 18; stock ignores it on ROCm */
    (void)thread_get();
    void *ptr = NULL; /* stock returns an uninitialised pointer on failure */
    REPORT("hipMalloc(&ptr, sizeBytes)", hip.Malloc(&ptr, sizeBytes), &out_of_memory,
           (unsigned long long)sizeBytes);
    return ptr;
}

void impl_mgpuMemFree(void *ptr, hipStream_t stream) {
    (void)stream;
    (void)thread_get();
    REPORT("hipFree(ptr)", hip.Free(ptr), &foreign_free, ptr);
}

void impl_mgpuMemcpy(void *dst, void *src, size_t sizeBytes, hipStream_t handle) {
    static const char expression[] =
        "hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression, hip.MemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, handle), &bad_copy,
           (unsigned long long)sizeBytes, src, dst);
    stream_submitted(stream);
}

void impl_mgpuMemset32(void *dst, int value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression, hip.MemsetD32Async(dst, value, count, handle), &bad_fill,
           (unsigned long long)count, 4, dst);
    stream_submitted(stream);
}

void impl_mgpuMemset16(void *dst, uint16_t value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD16Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression, hip.MemsetD16Async(dst, value, count, handle), &bad_fill,
           (unsigned long long)count, 2, dst);
    stream_submitted(stream);
}
