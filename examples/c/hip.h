/* Declares the functions of HIP that the examples call. If you have ROCm's headers, include
 * <hip/hip_runtime_api.h> instead. */
#ifndef HIP_H
#define HIP_H

#include <stddef.h>

typedef struct ihipStream_t *hipStream_t;
enum { hipSuccess = 0, hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 };

#ifdef __cplusplus
extern "C" {
#endif
int hipMalloc(void **memory, size_t bytes);
int hipFree(void *memory);
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int direction, hipStream_t stream);
int hipStreamCreate(hipStream_t *stream);
int hipStreamSynchronize(hipStream_t stream);
int hipStreamDestroy(hipStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
