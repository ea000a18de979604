/* HIP's ABI, as far as this project provides or calls it: types, numbers, layouts. The declarations
 * hold for HIP 5.2 to 7.2; no header of AMD's is needed to build. */
#ifndef MGPU_RT_HIP_ABI_H
#define MGPU_RT_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Opaque types: the pointed-to objects belong to the library. */
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef int hipDevice_t;
typedef int hipError_t;
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t error, void *data);

enum {
#define HIP_ERROR(number, name) name = number,
#include "hip_errors.def"
};

enum {
    hipEventDefault = 0,
    hipEventBlockingSync = 1,
    hipEventDisableTiming = 2,
    hipStreamNonBlocking = 1,
    hipMemcpyDefault = 4,
    hipMemAttachGlobal = 1,
    hipMemAttachHost = 2,
    hipHostMallocDefault = 0,
    hipDeviceMallocDefault = 0,
    hipPointerAttributeBufferId = 7,
    hipPointerAttributeDeviceOrdinal = 9,
    hipStreamCaptureStatusNone = 0,
    hipStreamCaptureModeGlobal = 0,
    hipStreamCaptureModeThreadLocal = 1,
    hipStreamCaptureModeRelaxed = 2,
};

/* hipDeviceAttribute_t. */
enum {
    hipDeviceAttributeCanMapHostMemory = 3,
    hipDeviceAttributeClockRate = 5,
    hipDeviceAttributeConcurrentKernels = 8,
    hipDeviceAttributeCooperativeLaunch = 10,
    hipDeviceAttributeIntegrated = 16,
    hipDeviceAttributeComputeCapabilityMajor = 23,
    hipDeviceAttributeMaxBlockDimX = 26,
    hipDeviceAttributeMaxGridDimX = 29,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributeComputeCapabilityMinor = 61,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributePageableMemoryAccess = 65,
    hipDeviceAttributePciBusId = 67,
    hipDeviceAttributePciDeviceId = 68,
    hipDeviceAttributePciDomainID = 69,
    hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
    hipDeviceAttributeSharedMemPerBlockOptin = 75,
    hipDeviceAttributeWarpSize = 87,
    hipDeviceAttributeIsLargeBar = 10011,
};

typedef struct hip_dim3 {
    uint32_t x, y, z;
} dim3;

/* A node of a graph that launches a kernel: either kernelParams or extra is set. */
typedef struct {
    dim3 blockDim;
    void **extra;
    hipFunction_t func;
    dim3 gridDim;
    void **kernelParams;
    unsigned sharedMemBytes;
} hipKernelNodeParams;

/* A graph's node that fills memory: `height` rows, each with `width` elements. An element has
 * `elementSize` bytes. */
typedef struct {
    void *dst;
    unsigned elementSize;
    size_t height;
    size_t pitch;
    unsigned value;
    size_t width;
} hipMemsetParams;

_Static_assert(sizeof(hipKernelNodeParams) == 64 && offsetof(hipKernelNodeParams, func) == 24 &&
                   offsetof(hipKernelNodeParams, kernelParams) == 48 &&
                   sizeof(hipMemsetParams) == 48 && offsetof(hipMemsetParams, width) == 40,
               "as in HIP 5.2 to 7.2");

/* HIP 6 changed the numbers of memory_type: before HIP 6, 0 means host and 1 means device. A later
 * HIP may write more bytes than this struct has. */
typedef struct {
    int memory_type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned allocation_flags;
} hipPointerAttribute_t;

/* the layout of HIP 5 */
typedef struct {
    char name[256];
    size_t total_global_bytes;
    size_t shared_bytes_per_block;
    int registers_per_block;
    int warp_size;
    int threads_per_block;
    int block_size[3];
    int grid_size[3];
    int clock_rate;
    int memory_clock_rate;
    int memory_bus_width;
    size_t constant_bytes;
    int major, minor;
    int multiprocessors;
    int l2_bytes;
    int threads_per_multiprocessor;
    int compute_mode;
    int clock_instruction_rate;
    unsigned arch_features;
    int concurrent_kernels;
    int pci_domain, pci_bus, pci_device;
    size_t shared_bytes_per_multiprocessor;
    int is_multi_gpu_board;
    int can_map_host_memory;
    int gcn_arch;
    char gcn_arch_name[256];
    int integrated;
    int cooperative_launch;
    int cooperative_multi_device_launch;
    int texture_sizes[7];
    unsigned *hdp_registers[2];
    size_t pitch;
    size_t texture_alignment, texture_pitch_alignment;
    int kernel_timeout;
    int ecc;
    int tcc;
    int cooperative_multi_device_unmatched[4];
    int is_large_bar;
    int asic_revision;
    int managed_memory;
    int direct_managed_access_from_host;
    int concurrent_managed_access;
    int pageable_access;
    int pageable_access_by_host_tables;
} hipDeviceProp_t;

_Static_assert(sizeof(hipDeviceProp_t) == 792 && offsetof(hipDeviceProp_t, arch_features) == 356 &&
                   offsetof(hipDeviceProp_t, pitch) == 712,
               "as in HIP 5.2");

#endif
