/* The functions of cuhip that HIP lacks. csrc/runtime looks these functions up by name, and works
 * without them on AMD's HIP. */
#ifndef CUHIP_BEYOND_H
#define CUHIP_BEYOND_H

#include "../hip_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* Sets the optimisation level (0 to 4) for the next PTX modules of the calling thread; any other
 * number selects the driver's default. */
EXPORT void mgpu_cuhip_jit_level(int level);

/* Creates a stream that is not ordered with the null stream, as LLVM's own library for CUDA does.
 */
EXPORT hipError_t mgpu_cuhip_stream_create(hipStream_t *stream);

/* Returns the type that the driver reports for the memory at an address, and leaves the last error
 * unchanged. Returns CU_MEMORYTYPE_HOST, _DEVICE ..., or 0 if the driver does not know the address
 * (pageable host memory). Costs half as much as hipPointerGetAttributes. */
EXPORT int mgpu_cuhip_memory_type(const void *address);

/* Returns the bytes of a kernel's parameter, from 0; 0 after the last one, or if the driver does
 * not tell (before CUDA 12.4). */
EXPORT size_t mgpu_cuhip_parameter_bytes(hipFunction_t function, unsigned number);

/* Launches in clusters of workgroups (sm_90 and later); if `cooperative` is set, all clusters run
 * at once. */
EXPORT hipError_t mgpu_cuhip_launch_cluster(hipFunction_t function, dim3 cluster, dim3 grid,
                                            dim3 block, unsigned shared_bytes, int cooperative,
                                            hipStream_t stream, void **params, void **extra);

/* Encodes a tensor map of 128 bytes, aligned to 64, for the tensor memory accelerator (sm_90 and
 * later). `type`, `interleave`, `swizzle`, `promotion` and `fill` are values of the driver's enums.
 * `sizes`, `box` and `steps` have `rank` elements, `strides` has rank - 1. All four lists begin
 * with the fastest dimension. */
EXPORT hipError_t mgpu_cuhip_tensor_map(void *map, int type, uint32_t rank, void *address,
                                        const uint64_t *sizes, const uint64_t *strides,
                                        const uint32_t *box, const uint32_t *steps, int interleave,
                                        int swizzle, int promotion, int fill);

/* Encodes a tensor map of a memref, and copies the map to device memory, whose address it stores at
 * `map`. A memref and `box` begin with the slowest dimension, and the memref's offset and strides
 * are in elements. If memory for the map, or the copy, fails, stores the failed call of stock at
 * `failed`. Returns hipErrorInvalidValue for a rank that is not 1 to 5, and for an unknown type. */
EXPORT hipError_t mgpu_cuhip_tensor_map_memref(void **map, const char **failed, int64_t rank,
                                               char *aligned, int64_t offset,
                                               const int64_t *sizes_and_strides, int type,
                                               int interleave, int swizzle, int promotion, int fill,
                                               const int64_t *box);

#endif
