/* Launches. A launch costs some tests in addition to the driver's call. A launch with dynamic
 * workgroup memory also looks up the function's permission for this memory. */
#include "cuhip.h"

#include <stdatomic.h>

enum { EXTRA_POINTER = 1, EXTRA_SIZE = 2, EXTRA_END_OF_HIP = 3, EXTRA_END_OF_CUDA = 0 };
enum { MOST_THREADS = 1024 };

/* ---- dynamic workgroup memory ---- */

/* A function needs a permission if its static and dynamic workgroup memory together exceed 48 KB.
 * cuhip requests the permission at a function's first launch with dynamic workgroup memory, and
 * again if a later launch needs more memory. An entry contains a function's address and, in its low
 * 16 bits, the permitted memory in units of 16 bytes. For a function whose entry was overwritten,
 * cuhip requests the permission again. */
enum { ALLOWED = 512, UNIT = 16 };
static _Atomic uint64_t allowed[ALLOWED];

static CUresult allow(hipFunction_t function, unsigned bytes) {
    const uint64_t key = (uint64_t)(uintptr_t)function << 16;
    const uint64_t units = (bytes + UNIT - 1) / UNIT;
    _Atomic uint64_t *entry = &allowed[((uintptr_t)function >> 4) % ALLOWED];
    const uint64_t known = atomic_load_explicit(entry, memory_order_relaxed);
    if ((known & ~UINT64_C(0xffff)) == key && (known & 0xffff) >= units)
        return CUDA_SUCCESS;
    const CUresult result = cuda.FuncSetAttribute(
        function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    if (result == CUDA_SUCCESS && units <= 0xffff)
        atomic_store_explicit(entry, key | units, memory_order_relaxed);
    return result;
}

void launch_invalidate(void) {
    for (int i = 0; i < ALLOWED; i++)
        atomic_store_explicit(&allowed[i], 0, memory_order_relaxed);
}

/* ---- what HIP and the driver say differently ---- */

/* Translates the list `extra`: HIP marks the list's end with the number 3, and the driver with the
 * number 0. Returns false if the list does not have the form that HIP requires. */
static bool translate_extra(void **extra, void *translated[5]) {
    if ((uintptr_t)extra[0] != EXTRA_POINTER || (uintptr_t)extra[2] != EXTRA_SIZE ||
        (uintptr_t)extra[4] != EXTRA_END_OF_HIP)
        return false;
    for (int i = 0; i < 4; i++)
        translated[i] = extra[i];
    translated[4] = (void *)EXTRA_END_OF_CUDA;
    return true;
}

/* Returns the error with which HIP refuses such a launch; 0 if HIP accepts the launch. */
static hipError_t objection(const struct launch *l) {
    if (!l->function)
        return hipErrorInvalidImage; /* AMD's HIP 5.2.3 returns the same error */
    if (!l->grid.x || !l->grid.y || !l->grid.z || !l->block.x || !l->block.y || !l->block.z)
        return hipErrorInvalidValue;
    if ((uint64_t)l->block.x * l->block.y * l->block.z > MOST_THREADS)
        return hipErrorInvalidConfiguration;
    return hipSuccess;
}

/* Returns the error of a launch that failed: HIP's own reason, or the driver's error. */
static hipError_t explain(const struct launch *l, CUresult result) {
    const hipError_t error = objection(l);
    return error ? error : from_cuda(result);
}

/* ---- the launches ---- */

hipError_t launch(const struct launch *l, void **extra) {
    void *translated[5], **list = NULL;
    if (UNLIKELY(!l->function))
        return hipErrorInvalidImage;
    if (UNLIKELY(extra != NULL)) {
        if (l->params || !translate_extra(extra, translated))
            return hipErrorInvalidValue;
        list = translated;
    }
    if (UNLIKELY(l->shared_bytes)) {
        const CUresult result = allow(l->function, l->shared_bytes);
        if (result != CUDA_SUCCESS)
            return explain(l, result);
    }
    const CUresult result =
        cuda.LaunchKernel(l->function, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y,
                          l->block.z, l->shared_bytes, l->stream, l->params, list);
    return LIKELY(result == CUDA_SUCCESS) ? hipSuccess : explain(l, result);
}

hipError_t launch_prepare(const struct launch *l, void **extra, void **translated) {
    const hipError_t error = objection(l);
    if (error)
        return error;
    if (extra && (l->params || !translate_extra(extra, translated)))
        return hipErrorInvalidValue;
    return from_cuda(l->shared_bytes ? allow(l->function, l->shared_bytes) : CUDA_SUCCESS);
}

hipError_t launch_cooperative(const struct launch *l) {
    const hipError_t error = objection(l);
    if (error)
        return error;
    CUresult result = l->shared_bytes ? allow(l->function, l->shared_bytes) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = cuda.LaunchCooperativeKernel(l->function, l->grid.x, l->grid.y, l->grid.z,
                                              l->block.x, l->block.y, l->block.z, l->shared_bytes,
                                              l->stream, l->params);
    return from_cuda(result);
}

hipError_t launch_cluster(const struct launch *l, dim3 cluster, bool cooperative, void **extra) {
    void *translated[5];
    const hipError_t error = objection(l);
    if (error)
        return error;
    if (extra && (l->params || !translate_extra(extra, translated)))
        return hipErrorInvalidValue;
    const struct cuda_launch_attribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
         .value.cluster = {cluster.x, cluster.y, cluster.z}},
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
    };
    const struct cuda_launch description = {
        .grid = {l->grid.x, l->grid.y, l->grid.z},
        .block = {l->block.x, l->block.y, l->block.z},
        .shared_bytes = l->shared_bytes,
        .stream = l->stream,
        .attributes = attributes,
        .attribute_count = cooperative ? 2 : 1,
    };
    CUresult result = l->shared_bytes ? allow(l->function, l->shared_bytes) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result =
            cuda.LaunchKernelEx(&description, l->function, l->params, extra ? translated : NULL);
    return from_cuda(result);
}

hipError_t launch_symbol(const void *symbol) {
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        cuhip_say("hipLaunchKernel(%p): a kernel by its host symbol is AMD's code; lower to a "
                  "gpu.binary for NVVM, whose kernels are found by name",
                  symbol);
    return hipErrorInvalidDeviceFunction;
}
