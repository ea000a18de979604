/* The calls of bench/native/hoisted.c, made directly to NVIDIA's driver, without a library in
 * between. If a driver function has HIP's arguments, the table of hip.h contains the address of the
 * driver function. */
#ifndef BENCH_LIBCUDA_H
#define BENCH_LIBCUDA_H

#include "hip.h"

#include <stdbool.h>
#include <string.h>

static struct {
    int (*Init)(unsigned flags);
    int (*DeviceGet)(int *device, int ordinal);
    int (*DevicePrimaryCtxRetain)(void **context, int device);
    int (*CtxSetCurrent)(void *context);
    int (*StreamCreate)(handle *stream, unsigned flags);
    int (*MemcpyAsync)(uintptr_t to, uintptr_t from, size_t size, handle stream);
    int (*MemsetD32Async)(uintptr_t to, unsigned value, size_t count, handle stream);
} cuda;

static int stream_create(handle *stream) {
    return cuda.StreamCreate(stream, 0);
}

static int copy_async(void *to, const void *from, size_t size, int kind, handle stream) {
    (void)kind; /* the driver derives the kind of copy from the addresses */
    return cuda.MemcpyAsync((uintptr_t)to, (uintptr_t)from, size, stream);
}

static int fill_async(void *to, int value, size_t count, handle stream) {
    return cuda.MemsetD32Async((uintptr_t)to, (unsigned)value, count, stream);
}

static inline bool is_libcuda(const char *path) {
    return strstr(path, "libcuda.so") != NULL;
}

/* Opens the driver, with the context that HIP and CUDA programs share. */
static inline void open_libcuda(const char *path) {
    void *library = open_library(path);
    void *context;
    int device;
#define RESOLVE(table, name, symbol_name) *(void **)&table.name = symbol(library, symbol_name)
    RESOLVE(cuda, Init, "cuInit");
    RESOLVE(cuda, DeviceGet, "cuDeviceGet");
    RESOLVE(cuda, DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    RESOLVE(cuda, CtxSetCurrent, "cuCtxSetCurrent");
    RESOLVE(cuda, StreamCreate, "cuStreamCreate");
    RESOLVE(cuda, MemcpyAsync, "cuMemcpyAsync");
    RESOLVE(cuda, MemsetD32Async, "cuMemsetD32Async");
    RESOLVE(hip, ModuleLoadData, "cuModuleLoadData");
    RESOLVE(hip, ModuleGetFunction, "cuModuleGetFunction");
    RESOLVE(hip, ModuleLaunchKernel, "cuLaunchKernel");
    RESOLVE(hip, StreamSynchronize, "cuStreamSynchronize");
    RESOLVE(hip, EventCreateWithFlags, "cuEventCreate");
    RESOLVE(hip, EventRecord, "cuEventRecord");
    RESOLVE(hip, StreamWaitEvent, "cuStreamWaitEvent");
    RESOLVE(hip, Malloc, "cuMemAlloc_v2");
    RESOLVE(hip, HostRegister, "cuMemHostRegister_v2");
#undef RESOLVE
    hip.StreamCreate = stream_create;
    hip.MemcpyAsync = copy_async;
    hip.MemsetD32Async = fill_async;
    check(cuda.Init(0), "cuInit");
    check(cuda.DeviceGet(&device, 0), "cuDeviceGet");
    check(cuda.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuda.CtxSetCurrent(context), "cuCtxSetCurrent");
}

#endif
