/* HIP's types and numbers as far as the stub serves them, laid out as in HIP 5.2 to 7.2. */
#ifndef HIPSTUB_HIP_TYPES_H
#define HIPSTUB_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;

typedef enum {
#define HIP_ERROR(code, name) name = code,
#include "errors.def"
#undef HIP_ERROR
} hipError_t;

enum {
    hipEventDefault = 0,
    hipEventBlockingSync = 1,
    hipEventDisableTiming = 2,
    hipStreamNonBlocking = 1,
};

enum {
    hipDeviceAttributeCanMapHostMemory = 3,
    hipDeviceAttributeClockRate = 5,
    hipDeviceAttributeConcurrentKernels = 8,
    hipDeviceAttributeCooperativeLaunch = 10,
    hipDeviceAttributeComputeCapabilityMajor = 23,
    hipDeviceAttributeMaxBlockDimX = 26,
    hipDeviceAttributeMaxGridDimX = 29,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributePageableMemoryAccess = 65,
    hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
    hipDeviceAttributeWarpSize = 87,
};

typedef struct {
    uint32_t x, y, z;
} dim3;

/* As in HIP 5; memory_type is 0 for the host's, 1 for a device's. */
typedef struct {
    int memory_type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned allocation_flags;
} hipPointerAttribute_t;

#endif
