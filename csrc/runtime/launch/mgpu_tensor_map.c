/* Tensor maps, for the tensor memory accelerator of NVIDIA's GPUs from sm_90 on. csrc/cuhip makes
 * them. */
#include "driver/hip.h"
#include "driver/report.h"
#include "shared/thread.h"

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
    if (!cuda_present())
        report_failure(encode_expression, hipErrorNotSupported, &not_nvidia);
    else
        REPORT(encode_expression,
               cuda.tensor_map(tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                               globalStrides, boxDim, elementStrides, interleave, swizzle,
                               l2Promotion, oobFill),
               &bad_map, globalAddress, (long)tensorRank);
}

/* The program never frees the map's memory, as with stock. */
void *impl_mgpuTensorMapEncodeTiledMemref(int64_t tensorRank, struct mgpu_memref *descriptor,
                                          int tensorDataType, int interleave, int swizzle,
                                          int l2Promotion, int oobFill,
                                          const int64_t *inputBoxDims) {
    const char *expression = encode_expression;
    void *map = NULL;
    (void)thread_get();
    if (!cuda_present())
        report_failure(expression, hipErrorNotSupported, &not_nvidia);
    else
        REPORT(expression,
               cuda.tensor_map_memref(&map, &expression, tensorRank, descriptor->aligned,
                                      descriptor->offset, descriptor->sizes_and_strides,
                                      tensorDataType, interleave, swizzle, l2Promotion, oobFill,
                                      inputBoxDims),
               expression == encode_expression ? &bad_map : NULL, (void *)descriptor->aligned,
               (long)tensorRank);
    return map;
}
