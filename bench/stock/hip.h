/* The functions of HIP that these runtimes call, so that the runtimes build without HIP's
 * headers. */
#ifndef STOCK_HIP_H
#define STOCK_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;

typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;

typedef struct {
    uint32_t x, y, z;
} dim3;

typedef struct {
    dim3 blockDim;
    void **extra;
    void *func;
    dim3 gridDim;
    void **kernelParams;
    unsigned sharedMemBytes;
} hipKernelNodeParams;

enum { MEMCPY_DEFAULT = 4, EVENT_DISABLE_TIMING = 2, ATTACH_GLOBAL = 1 };

const char *hipGetErrorName(hipError_t error);
hipError_t hipSetDevice(int device);

hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
                                 unsigned smem, hipStream_t stream, void **params, void **extra);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gridX, unsigned gridY,
                                            unsigned gridZ, unsigned blockX, unsigned blockY,
                                            unsigned blockZ, unsigned smem, hipStream_t stream,
                                            void **params);
hipError_t hipLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **params, size_t smem,
                           hipStream_t stream);

hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);

hipError_t hipMalloc(void **ptr, size_t bytes);
hipError_t hipMallocManaged(void **ptr, size_t bytes, unsigned flags);
hipError_t hipFree(void *ptr);
hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, hipStream_t stream);
hipError_t hipMemsetD32Async(void *dst, int value, size_t count, hipStream_t stream);
hipError_t hipMemsetD16Async(void *dst, unsigned short value, size_t count, hipStream_t stream);
hipError_t hipHostRegister(void *ptr, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void *ptr);
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags);

hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *dependencies, size_t count,
                                 const hipKernelNodeParams *params);
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                   const hipGraphNode_t *dependencies, size_t count, void *dst,
                                   const void *src, size_t bytes, int kind);
hipError_t hipGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph, hipGraphNode_t *wrong,
                               char *text, size_t room);
hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream);
hipError_t hipGraphExecDestroy(hipGraphExec_t executable);

#endif
