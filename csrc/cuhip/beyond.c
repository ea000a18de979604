#include "beyond.h"
#include "cuhip.h"

hipError_t mgpu_cuhip_stream_create(hipStream_t *stream) {
    hipError_t error = context_enter();
    if (!error)
        error = stream_create(stream, hipStreamNonBlocking);
    return thread_state.last = error;
}

size_t mgpu_cuhip_parameter_bytes(hipFunction_t function, unsigned number) {
    size_t offset, bytes = 0;
    const bool is_told = function && !context_enter() &&
                         cuda.FuncGetParamInfo(function, number, &offset, &bytes) == CUDA_SUCCESS;
    return is_told ? bytes : 0;
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

enum { MOST_DIMENSIONS = 5, MAP_BYTES = 128 };

/* Returns the number of bytes of an element; 0 for an unknown type. The array has the order of
 * CUtensorMapDataType: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, and three forms of f32. */
static int64_t element_bytes(int type) {
    static const unsigned char bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static hipError_t map_on_device(void **address, const char **failed, const void *map) {
    hipError_t error = memory_allocate(address, MAP_BYTES);
    *failed = "cuMemAlloc(&dTensorMap, sizeof(CUtensorMap))";
    if (error)
        return thread_state.last = error;
    *failed = "cuMemcpy(dTensorMap, &tensorMap, sizeof(CUtensorMap))";
    error = copy_async(*address, map, MAP_BYTES, hipMemcpyDefault, NULL);
    if (!error)
        error = from_cuda(cuda.StreamSynchronize(NULL));
    return thread_state.last = error;
}

hipError_t mgpu_cuhip_tensor_map_memref(void **map, const char **failed, int64_t rank,
                                        char *aligned, int64_t offset,
                                        const int64_t *sizes_and_strides, int type, int interleave,
                                        int swizzle, int promotion, int fill, const int64_t *box) {
    _Alignas(64) unsigned char encoded[MAP_BYTES] = {0};
    uint64_t sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS] = {0};
    uint32_t boxes[MOST_DIMENSIONS], steps[MOST_DIMENSIONS];
    const int64_t bytes = element_bytes(type);
    if (rank < 1 || rank > MOST_DIMENSIONS || !bytes)
        return thread_state.last = hipErrorInvalidValue;
    for (int64_t i = 0; i < rank; i++) {
        sizes[i] = (uint64_t)sizes_and_strides[rank - 1 - i];
        boxes[i] = (uint32_t)box[rank - 1 - i];
        steps[i] = 1;
        if (i > 0)
            strides[i - 1] = (uint64_t)(sizes_and_strides[2 * rank - 1 - i] * bytes);
    }
    const hipError_t error =
        mgpu_cuhip_tensor_map(encoded, type, (uint32_t)rank, aligned + offset * bytes, sizes,
                              strides, boxes, steps, interleave, swizzle, promotion, fill);
    return error ? error : map_on_device(map, failed, encoded);
}
