#include "beyond.h"
#include "cuhip.h"

hipError_t mgpu_cuhip_stream_create(hipStream_t *stream) {
    hipError_t error = context_enter();
    if (!error)
        error = stream_create(stream, hipStreamNonBlocking);
    return thread_state.last = error;
}

hipError_t mgpu_cuhip_launch_cluster(hipFunction_t function, dim3 cluster, dim3 grid, dim3 block,
                                     unsigned shared_bytes, int cooperative, hipStream_t stream,
                                     void **params, void **extra) {
    const struct launch wanted = {function, grid, block, shared_bytes, stream, params};
    hipError_t error = context_enter();
    if (!error)
        error = launch_cluster(&wanted, cluster, cooperative != 0, extra);
    return thread_state.last = error;
}

hipError_t mgpu_cuhip_tensor_map(void *map, int type, uint32_t rank, void *address,
                                 const uint64_t *sizes, const uint64_t *strides,
                                 const uint32_t *box, const uint32_t *steps, int interleave,
                                 int swizzle, int promotion, int fill) {
    hipError_t error = context_enter();
    if (!error)
        error = from_cuda(cuda.TensorMapEncodeTiled(map, type, rank, address, sizes, strides, box,
                                                    steps, interleave, swizzle, promotion, fill));
    return thread_state.last = error;
}
