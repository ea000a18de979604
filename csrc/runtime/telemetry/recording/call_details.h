/* The meaning of each function's arguments for a call (struct call), for statistics and trace. */
#ifndef MGPU_RT_CALL_DETAILS_H
#define MGPU_RT_CALL_DETAILS_H

#define DETAIL_NOTHING .begin = 0
#define DETAIL_STREAM .in_stream = true, .stream = stream

#define DETAIL_mgpuModuleLoad .image = image
#define DETAIL_mgpuModuleLoadJIT .image = assembly
#define DETAIL_mgpuModuleUnload DETAIL_NOTHING
#define DETAIL_mgpuModuleGetFunction .module = module, .name = name

#define DETAIL_mgpuLaunchKernel DETAIL_STREAM, .kernel = function
#define DETAIL_mgpuLaunchKernelCooperative DETAIL_STREAM, .kernel = function
#define DETAIL_mgpuLaunchClusterKernel DETAIL_STREAM, .kernel = function
#define DETAIL_mgpuLaunchKernelRT DETAIL_STREAM, .kernel = symbol

#define DETAIL_mgpuStreamCreate DETAIL_NOTHING
#define DETAIL_mgpuStreamDestroy DETAIL_STREAM
#define DETAIL_mgpuStreamSynchronize DETAIL_STREAM
#define DETAIL_mgpuStreamWaitEvent DETAIL_STREAM
#define DETAIL_mgpuEventCreate DETAIL_NOTHING
#define DETAIL_mgpuEventDestroy DETAIL_NOTHING
#define DETAIL_mgpuEventSynchronize DETAIL_NOTHING
#define DETAIL_mgpuEventRecord DETAIL_STREAM

#define DETAIL_mgpuMemAlloc DETAIL_STREAM, .bytes = sizeBytes
#define DETAIL_mgpuMemFree DETAIL_STREAM
#define DETAIL_mgpuMemcpy DETAIL_STREAM, .to = dst, .from = src, .bytes = sizeBytes
#define DETAIL_mgpuMemset32 DETAIL_STREAM, .bytes = 4 * (uint64_t)count
#define DETAIL_mgpuMemset16 DETAIL_STREAM, .bytes = 2 * (uint64_t)count
#define DETAIL_mgpuMemHostRegister .bytes = sizeBytes
#define DETAIL_mgpuMemHostRegisterMemRef DETAIL_NOTHING
#define DETAIL_mgpuMemHostUnregister DETAIL_NOTHING
#define DETAIL_mgpuMemHostUnregisterMemRef DETAIL_NOTHING
#define DETAIL_mgpuMemGetDeviceMemRef1dFloat DETAIL_NOTHING
#define DETAIL_mgpuMemGetDeviceMemRef1dInt32 DETAIL_NOTHING

#define DETAIL_mgpuSetDefaultDevice DETAIL_NOTHING

#define DETAIL_mgpuTensorMapEncodeTiled DETAIL_NOTHING
#define DETAIL_mgpuTensorMapEncodeTiledMemref DETAIL_NOTHING

/* Sparse matrices */
#define DETAIL_mgpuCreateSparseEnv DETAIL_NOTHING
#define DETAIL_mgpuDestroySparseEnv DETAIL_NOTHING
#define DETAIL_mgpuCreateDnVec DETAIL_STREAM
#define DETAIL_mgpuDestroyDnVec DETAIL_STREAM
#define DETAIL_mgpuCreateDnMat DETAIL_STREAM
#define DETAIL_mgpuDestroyDnMat DETAIL_STREAM
#define DETAIL_mgpuCreateCoo DETAIL_STREAM
#define DETAIL_mgpuCreateCooAoS DETAIL_STREAM
#define DETAIL_mgpuCreateCsr DETAIL_STREAM
#define DETAIL_mgpuCreateCsc DETAIL_STREAM
#define DETAIL_mgpuCreateBsr DETAIL_STREAM
#define DETAIL_mgpuDestroySpMat DETAIL_STREAM
#define DETAIL_mgpuSpMVBufferSize DETAIL_STREAM
#define DETAIL_mgpuSpMV DETAIL_STREAM
#define DETAIL_mgpuSpMMBufferSize DETAIL_STREAM
#define DETAIL_mgpuSpMM DETAIL_STREAM
#define DETAIL_mgpuSDDMMBufferSize DETAIL_STREAM
#define DETAIL_mgpuSDDMM DETAIL_STREAM
#define DETAIL_mgpuSpGEMMCreateDescr DETAIL_STREAM
#define DETAIL_mgpuSpGEMMDestroyDescr DETAIL_STREAM
#define DETAIL_mgpuSpGEMMWorkEstimation DETAIL_STREAM
#define DETAIL_mgpuSpGEMMCompute DETAIL_STREAM
#define DETAIL_mgpuSpGEMMCopy DETAIL_STREAM
#define DETAIL_mgpuSpMatGetSize DETAIL_STREAM
#define DETAIL_mgpuSetCsrPointers DETAIL_STREAM
#define DETAIL_mgpuCreateSparseLtEnv DETAIL_NOTHING
#define DETAIL_mgpuDestroySparseLtEnv DETAIL_NOTHING
#define DETAIL_mgpuCreateCuSparseLtDnMat DETAIL_STREAM
#define DETAIL_mgpuDestroyCuSparseLtDnMat DETAIL_STREAM
#define DETAIL_mgpuCusparseLtCreate2To4SpMat DETAIL_STREAM
#define DETAIL_mgpuDestroyCuSparseLtSpMat DETAIL_STREAM
#define DETAIL_mgpuCuSparseLtSpMMBufferSize DETAIL_STREAM
#define DETAIL_mgpuCuSparseLtSpMM DETAIL_STREAM

/* For compilers beside LLVM's */
#define DETAIL_mgpuModuleGetGlobal .module = module, .name = name
#define DETAIL_mgpuModuleOccupancyMaxActiveBlocks .image = image
#define DETAIL_mgpuEventElapsedTime DETAIL_NOTHING
#define DETAIL_mgpuTraceBufferRead .bytes = sizeBytes
#define DETAIL_mgpuTraceBufferClear .bytes = sizeBytes

#endif
