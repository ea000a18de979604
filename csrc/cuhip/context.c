/* Finds the primary context of the thread's HIP device, and tells the driver to use this context.
 */
#include "cuhip.h"

enum { MOST_DEVICES = 64 };

/* Contexts are never released, because an exit handler that calls the driver may run after the
 * driver's own exit handler. No lock is needed: if two threads retain the context concurrently, the
 * driver gives the same context to both threads. */
static _Atomic(CUcontext) contexts[MOST_DEVICES];

hipError_t device_handle(int ordinal, CUdevice *device) {
    if (ordinal < 0 || ordinal >= cuda_device_count)
        return hipErrorInvalidDevice;
    return from_cuda(cuda.DeviceGet(device, ordinal));
}

hipError_t context_of(int ordinal, CUcontext *context) {
    CUdevice device;
    if (ordinal >= MOST_DEVICES)
        return hipErrorInvalidDevice;
    hipError_t error = device_handle(ordinal, &device);
    if (error != hipSuccess)
        return error;
    *context = contexts[ordinal];
    if (*context)
        return hipSuccess;
    error = from_cuda(cuda.DevicePrimaryCtxRetain(context, device));
    if (error == hipSuccess)
        contexts[ordinal] = *context;
    return error;
}

static int ordinal_of(CUdevice device) {
    for (int ordinal = 0; ordinal < cuda_device_count; ordinal++) {
        CUdevice candidate;
        if (cuda.DeviceGet(&candidate, ordinal) == CUDA_SUCCESS && candidate == device)
            return ordinal;
    }
    return 0;
}

hipError_t stream_device(hipStream_t stream, int *ordinal) {
    CUdevice device;
    if (!ordinal)
        return hipErrorInvalidValue;
    const hipError_t error = from_cuda(cuda.StreamGetDevice(stream, &device));
    if (error == hipSuccess)
        *ordinal = ordinal_of(device);
    return error;
}

bool context_adopt(void) {
    CUcontext current = NULL;
    CUdevice device;
    if (thread_state.chosen || cuda.CtxGetCurrent(&current) != CUDA_SUCCESS || !current ||
        cuda.CtxGetDevice(&device) != CUDA_SUCCESS)
        return false;
    thread_state.device = ordinal_of(device);
    return true;
}

hipError_t context_bind(void) {
    CUcontext context;
    hipError_t error = driver_start();
    if (error != hipSuccess)
        return error;
    if (!context_adopt()) {
        error = context_of(thread_state.device, &context);
        if (error == hipSuccess)
            error = from_cuda(cuda.CtxSetCurrent(context));
    }
    thread_state.ready = error == hipSuccess;
    return error;
}
