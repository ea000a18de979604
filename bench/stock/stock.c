/* A plain ROCm runtime for lowered programs: every mgpu* call goes to HIP, and nothing is cached.
 *
 * This library behaves like LLVM 23's runtime wrappers, prints the same failure lines, and links
 * against libamdhip64. Benchmarks, the demonstration and the tests compare mgpu_rt with this
 * library, call by call. This library ignores the arguments that later versions of LLVM added at
 * the end, so it serves programs of LLVM 12 to 24. */
#include "hip.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static void report(hipError_t error, const char *expression) {
    if (error == 0)
        return;
    const char *name = hipGetErrorName(error);
    fprintf(stderr, "'%s' failed with '%s'\n", expression, name != NULL ? name : "<unknown>");
}

/* The expressions in failure lines are LLVM's C++ expressions, because tools search for these
 * expressions. */
#define REPORTED(call) report((call), #call)
#define REPORTED_AS(call, text) report((call), text)

struct memref {
    char *allocated;
    char *aligned;
    int64_t offset;
    int64_t sizes_then_strides[];
};

struct memref_float {
    float *allocated, *aligned;
    int64_t offset, size, stride;
};

struct memref_int32 {
    int32_t *allocated, *aligned;
    int64_t offset, size, stride;
};

/* Modules */

EXPORT hipModule_t mgpuModuleLoad(void *data, size_t bytes) {
    (void)bytes;
    hipModule_t module = NULL;
    REPORTED(hipModuleLoadData(&module, data));
    return module;
}

EXPORT hipModule_t mgpuModuleLoadJIT(void *data, int level, size_t bytes) {
    (void)data, (void)level, (void)bytes;
    assert(!"HIP has no such function");
    return NULL;
}

EXPORT void mgpuModuleUnload(hipModule_t module) {
    REPORTED(hipModuleUnload(module));
}

EXPORT hipFunction_t mgpuModuleGetFunction(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    REPORTED(hipModuleGetFunction(&function, module, name));
    return function;
}

/* Launches */

EXPORT void mgpuLaunchKernel(hipFunction_t function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                             hipStream_t stream, void **params, void **extra, size_t count) {
    (void)count;
    REPORTED(hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem,
                                   stream, params, extra));
}

EXPORT void mgpuLaunchKernelCooperative(hipFunction_t function, intptr_t gridX, intptr_t gridY,
                                        intptr_t gridZ, intptr_t clusterX, intptr_t clusterY,
                                        intptr_t clusterZ, intptr_t blockX, intptr_t blockY,
                                        intptr_t blockZ, int32_t smem, hipStream_t stream,
                                        void **params, void **extra) {
    (void)extra;
    if (clusterX != 0 || clusterY != 0 || clusterZ != 0) {
        fprintf(stderr, "mgpuLaunchKernelCooperative: clusters (%ld, %ld, %ld) are not HIP's\n",
                (long)clusterX, (long)clusterY, (long)clusterZ);
        abort();
    }
    REPORTED(hipModuleLaunchCooperativeKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ,
                                              smem, stream, params));
}

EXPORT void mgpuLaunchKernelRT(void *function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                               intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                               hipStream_t stream, void **params, void **extra, size_t count) {
    (void)extra, (void)count;
    const dim3 grid = {(uint32_t)gridX, (uint32_t)gridY, (uint32_t)gridZ};
    const dim3 block = {(uint32_t)blockX, (uint32_t)blockY, (uint32_t)blockZ};
    REPORTED_AS(
        hipLaunchKernel(function, grid, block, params, (size_t)smem, stream),
        "hipLaunchKernel(function, dim3(gridX, gridY, gridZ), dim3(blockX, blockY, blockZ), "
        "params, smem, stream)");
}

/* Streams and events */

EXPORT hipStream_t mgpuStreamCreate(void) {
    hipStream_t stream = NULL;
    REPORTED(hipStreamCreate(&stream));
    return stream;
}

EXPORT void mgpuStreamDestroy(hipStream_t stream) {
    REPORTED(hipStreamDestroy(stream));
}

EXPORT void mgpuStreamSynchronize(hipStream_t stream) {
    REPORTED(hipStreamSynchronize(stream));
}

EXPORT void mgpuStreamWaitEvent(hipStream_t stream, hipEvent_t event) {
    REPORTED(hipStreamWaitEvent(stream, event, 0));
}

EXPORT hipEvent_t mgpuEventCreate(void) {
    hipEvent_t event = NULL;
    REPORTED_AS(hipEventCreateWithFlags(&event, EVENT_DISABLE_TIMING),
                "hipEventCreateWithFlags(&event, hipEventDisableTiming)");
    return event;
}

EXPORT void mgpuEventDestroy(hipEvent_t event) {
    REPORTED(hipEventDestroy(event));
}

EXPORT void mgpuEventSynchronize(hipEvent_t event) {
    REPORTED(hipEventSynchronize(event));
}

EXPORT void mgpuEventRecord(hipEvent_t event, hipStream_t stream) {
    REPORTED(hipEventRecord(event, stream));
}

/* Memory */

/* When hipMalloc fails, LLVM's wrappers return an uninitialised pointer; this library returns NULL,
 * so that comparisons give the same result each time. */
EXPORT void *mgpuMemAlloc(uint64_t sizeBytes, hipStream_t stream, bool host_shared) {
    (void)stream, (void)host_shared;
    void *ptr = NULL;
    REPORTED(hipMalloc(&ptr, sizeBytes));
    return ptr;
}

EXPORT void mgpuMemFree(void *ptr, hipStream_t stream) {
    (void)stream;
    REPORTED(hipFree(ptr));
}

EXPORT void mgpuMemcpy(void *dst, void *src, size_t sizeBytes, hipStream_t stream) {
    REPORTED_AS(hipMemcpyAsync(dst, src, sizeBytes, MEMCPY_DEFAULT, stream),
                "hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)");
}

EXPORT void mgpuMemset32(void *dst, int value, size_t count, hipStream_t stream) {
    REPORTED_AS(hipMemsetD32Async(dst, value, count, stream),
                "hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)");
}

EXPORT void mgpuMemset16(void *dst, uint16_t value, size_t count, hipStream_t stream) {
    REPORTED_AS(hipMemsetD16Async(dst, value, count, stream),
                "hipMemsetD16Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)");
}

EXPORT void mgpuMemHostRegister(void *ptr, uint64_t sizeBytes) {
    REPORTED(hipHostRegister(ptr, sizeBytes, 0));
}

/* Only dense memrefs may be registered. A memref of rank 0, which is undefined before LLVM 23, is
 * one element. */
EXPORT void mgpuMemHostRegisterMemRef(int64_t rank, struct memref *descriptor, int64_t element) {
    const int64_t *sizes = descriptor->sizes_then_strides;
    int64_t count = 1;
    for (int64_t r = rank; r-- > 0; count *= sizes[r])
        assert(sizes[rank + r] == count);
    mgpuMemHostRegister(descriptor->aligned + descriptor->offset * element,
                        (uint64_t)(count * element));
}

EXPORT void mgpuMemHostUnregister(void *ptr) {
    REPORTED(hipHostUnregister(ptr));
}

EXPORT void mgpuMemHostUnregisterMemRef(int64_t rank, struct memref *descriptor, int64_t element) {
    (void)rank;
    mgpuMemHostUnregister(descriptor->aligned + descriptor->offset * element);
}

static void device_pointer(void *hostPtr, void **devicePtr) {
    REPORTED(hipSetDevice(0));
    REPORTED_AS(hipHostGetDevicePointer(devicePtr, hostPtr, 0),
                "hipHostGetDevicePointer((void **)devicePtr, hostPtr, 0)");
}

EXPORT struct memref_float mgpuMemGetDeviceMemRef1dFloat(float *allocated, float *aligned,
                                                         int64_t offset, int64_t size,
                                                         int64_t stride) {
    (void)allocated;
    void *device = NULL;
    device_pointer(aligned, &device);
    return (struct memref_float){device, device, offset, size, stride};
}

EXPORT struct memref_int32 mgpuMemGetDeviceMemRef1dInt32(int32_t *allocated, int32_t *aligned,
                                                         int64_t offset, int64_t size,
                                                         int64_t stride) {
    (void)allocated;
    void *device = NULL;
    device_pointer(aligned, &device);
    return (struct memref_int32){device, device, offset, size, stride};
}

EXPORT void mgpuSetDefaultDevice(int32_t device) {
    REPORTED(hipSetDevice(device));
}
