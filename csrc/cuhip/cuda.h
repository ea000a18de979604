/* The table of the driver's functions, which the first call fills. A build needs no header of
 * NVIDIA's: cuda.def and this file declare all that cuhip uses. */
#ifndef CUHIP_CUDA_H
#define CUHIP_CUDA_H

#include "../hip_abi.h"

/* Event flags: the driver's flags, and AMD's flags that flush caches. */
enum { EVENT_FLAGS_OF_CUDA = 1 | 2 | 4 };
#define EVENT_FLAGS_OF_AMD 0xE0000000u

/* Host allocation flags: the driver's flags (portable, mapped, write-combined), and AMD's flags. */
enum { HOST_FLAGS_OF_CUDA = 1 | 2 | 4 };
#define HOST_FLAGS_OF_AMD 0xE0000000u

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum { CU_MEMHOSTREGISTER_PORTABLE = 1, CU_MEMHOSTREGISTER_DEVICEMAP = 2 };

/* CUfunction_attribute; HIP uses the same numbers. */
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };

/* CUjit_option */
enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_OPTIMIZATION_LEVEL = 7,
};

/* CUpointer_attribute and CUmemorytype */
enum {
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_UNIFIED = 4,
};

/* CUlaunchAttribute, CUlaunchConfig */
enum { CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };

struct cuda_launch_attribute {
    int id;
    char unused[4];
    union {
        char bytes[64];
        unsigned cluster[3];
        int cooperative;
    } value;
};

struct cuda_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    hipStream_t stream;
    const struct cuda_launch_attribute *attributes;
    unsigned attribute_count;
};

/* CUDA_KERNEL_NODE_PARAMS (as of CUDA 10), CUDA_MEMSET_NODE_PARAMS, CUDA_MEMCPY3D */
struct cuda_kernel_node {
    hipFunction_t function;
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **params, **extra;
};

struct cuda_fill_node {
    void *to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

struct cuda_copy_end {
    size_t x, y, z, level;
    int type;
    void *host, *device, *array, *reserved;
    size_t pitch, height;
};

struct cuda_copy_node {
    struct cuda_copy_end from, to;
    size_t bytes, height, depth;
};

_Static_assert(sizeof(struct cuda_kernel_node) == 56 && sizeof(struct cuda_fill_node) == 40 &&
                   sizeof(struct cuda_copy_node) == 200,
               "as in CUDA 10 to 13");

struct cuda_functions {
#define CU_FN(need, name, symbol, params) CUresult(*name) params;
#include "cuda.def"
#undef CU_FN
};

/* The driver's functions; valid once driver_start has returned hipSuccess. */
extern struct cuda_functions cuda;

/* The devices that the driver reports; valid once driver_start has returned hipSuccess. */
extern int cuda_device_count;

/* Opens and initialises libcuda, once. If there is no libcuda, prints a line on stderr and returns
 * hipErrorInsufficientDriver. Later calls of driver_start return the result of the first call, and
 * cost one load. */
hipError_t driver_start(void);

#endif
