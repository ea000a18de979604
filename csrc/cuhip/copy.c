/* Copies and fills. Addresses are unified, so the driver detects the kinds of memory, and the kind
 * argument is only validated. */
#include "cuhip.h"

hipError_t then_wait(hipError_t error, hipStream_t stream) {
    return error ? error : from_cuda(cuda.StreamSynchronize(stream));
}

hipError_t copy_async(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    if (UNLIKELY(kind < 0 || kind > hipMemcpyDefault))
        return hipErrorInvalidMemcpyDirection;
    if (UNLIKELY(bytes == 0))
        return hipSuccess;
    if (UNLIKELY(!to || !from))
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemcpyAsync(to, from, bytes, stream));
}

/* The driver's synchronous copy returns before a copy within the device is complete. */
hipError_t copy(void *to, const void *from, size_t bytes, int kind) {
    const hipError_t error = copy_async(to, from, bytes, kind, NULL);
    return bytes ? then_wait(error, NULL) : error;
}

hipError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                     hipStream_t stream) {
    CUcontext to_context, from_context;
    hipError_t error = context_of(to_device, &to_context);
    if (!error)
        error = context_of(from_device, &from_context);
    if (error || bytes == 0)
        return error;
    if (!to || !from)
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemcpyPeerAsync(to, to_context, from, from_context, bytes, stream));
}

hipError_t fill8(void *to, unsigned char value, size_t count, hipStream_t stream) {
    return count ? from_cuda(cuda.MemsetD8Async(to, value, count, stream)) : hipSuccess;
}

hipError_t fill16(void *to, unsigned short value, size_t count, hipStream_t stream) {
    return count ? from_cuda(cuda.MemsetD16Async(to, value, count, stream)) : hipSuccess;
}

hipError_t fill32(void *to, unsigned value, size_t count, hipStream_t stream) {
    return count ? from_cuda(cuda.MemsetD32Async(to, value, count, stream)) : hipSuccess;
}
