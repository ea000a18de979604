/* Tensor maps, for the tensor memory accelerator of NVIDIA's GPUs from sm_90 on. */
#include "driver/cuda.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "mgpu.h"
#include "shared/thread.h"

enum { MOST_DIMENSIONS = 5, MAP_BYTES = 128 };

static const char encode_expression[] =
    "cuTensorMapEncodeTiled(tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, "
    "globalStrides, boxDim, elementStrides, interleave, swizzle, l2Promotion, oobFill)";

static struct advice not_nvidia = {
    .text = "tensor maps are NVIDIA's (sm_90 and later), and this HIP is not over NVIDIA's driver: "
            "run with `mgpu-rt run --device cuda`, or lower without nvgpu.tma"};
static struct advice bad_map = {
    .text =
        "the driver cannot map the tensor at %p of rank %ld: its address and its strides have to "
        "be multiples of 16, and a box has at most 256 elements along each dimension"};

void impl_mgpuTensorMapEncodeTiled(void *tensorMap, int tensorDataType, uint32_t tensorRank,
                                   void *globalAddress, const uint64_t *globalDim,
                                   const uint64_t *globalStrides, const uint32_t *boxDim,
                                   const uint32_t *elementStrides, int interleave, int swizzle,
                                   int l2Promotion, int oobFill) {
    (void)thread_get();
    if (!cuda_present()) {
        report_failure(encode_expression, hipErrorNotSupported, &not_nvidia);
        return;
    }
    REPORT(encode_expression,
           cuda.tensor_map(tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                           globalStrides, boxDim, elementStrides, interleave, swizzle, l2Promotion,
                           oobFill),
           &bad_map, globalAddress, (long)tensorRank);
}

/* Returns the number of bytes of an element; 0 for an unknown type. The array has the order of
 * CUtensorMapDataType: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, and three forms of f32. */
static int64_t element_bytes(int type) {
    static const unsigned char bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

/* Copies the tensor map to device memory. The program never frees this memory, as with stock. */
static void *map_on_device(const void *map) {
    void *address = NULL;
    REPORT("cuMemAlloc(&dTensorMap, sizeof(CUtensorMap))", hip.Malloc(&address, MAP_BYTES), NULL);
    if (!address)
        return NULL;
    REPORT("cuMemcpy(dTensorMap, &tensorMap, sizeof(CUtensorMap))",
           hip.MemcpyAsync(address, map, MAP_BYTES, hipMemcpyDefault, NULL), NULL);
    REPORT("cuMemcpy(dTensorMap, &tensorMap, sizeof(CUtensorMap))", hip.StreamSynchronize(NULL),
           NULL);
    return address;
}

/* A memref names its slowest dimension first; a tensor map names its fastest dimension first. */
void *impl_mgpuTensorMapEncodeTiledMemref(int64_t tensorRank, struct mgpu_memref *descriptor,
                                          int tensorDataType, int interleave, int swizzle,
                                          int l2Promotion, int oobFill,
                                          const int64_t *inputBoxDims) {
    _Alignas(64) unsigned char map[MAP_BYTES] = {0};
    uint64_t sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS] = {0};
    uint32_t box[MOST_DIMENSIONS], steps[MOST_DIMENSIONS];
    const int64_t bytes = element_bytes(tensorDataType);
    (void)thread_get();
    if (!cuda_present() || tensorRank < 1 || tensorRank > MOST_DIMENSIONS || !bytes) {
        report_failure(encode_expression,
                       cuda_present() ? hipErrorInvalidValue : hipErrorNotSupported,
                       cuda_present() ? &bad_map : &not_nvidia,
                       cuda_present() ? (void *)descriptor->aligned : NULL, (long)tensorRank);
        return NULL;
    }
    const int64_t *of_sizes = descriptor->sizes_and_strides, *of_strides = of_sizes + tensorRank;
    for (int64_t i = 0; i < tensorRank; i++) {
        sizes[i] = (uint64_t)of_sizes[tensorRank - 1 - i];
        box[i] = (uint32_t)inputBoxDims[tensorRank - 1 - i];
        steps[i] = 1;
        if (i > 0)
            strides[i - 1] = (uint64_t)(of_strides[tensorRank - 1 - i] * bytes);
    }
    char *address = descriptor->aligned + descriptor->offset * bytes;
    const hipError_t error =
        cuda.tensor_map(map, tensorDataType, (uint32_t)tensorRank, address, sizes, strides, box,
                        steps, interleave, swizzle, l2Promotion, oobFill);
    if (error != hipSuccess) {
        report_failure(encode_expression, error, &bad_map, (void *)address, (long)tensorRank);
        return NULL;
    }
    return map_on_device(map);
}
