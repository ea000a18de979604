/* Declares the HIP functions that the device's tests use, without AMD's headers, and looks up these
 * functions in libamdhip64 at run time. The path of the HIP library is $MGPU_RT_HIP. */
#ifndef SOFTGPU_TEST_HIP_H
#define SOFTGPU_TEST_HIP_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ihipModule_t *hipModule_t;
typedef struct ihipFunction_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;

enum {
    hipMemcpyHostToDevice = 1,
    hipMemcpyDeviceToHost = 2,
    hipMemcpyDeviceToDevice = 3,
    hipErrorOutOfMemory = 2,
};
enum { hipEventDisableTiming = 2, hipStreamNonBlocking = 1, hipHostRegisterMapped = 2 };

#define HIP_FUNCTIONS(X)                                                                           \
    X(hipInit, (unsigned))                                                                         \
    X(hipGetDeviceCount, (int *))                                                                  \
    X(hipSetDevice, (int))                                                                         \
    X(hipDeviceGetName, (char *, int, int))                                                        \
    X(hipDeviceSynchronize, (void))                                                                \
    X(hipModuleLoadData, (hipModule_t *, const void *))                                            \
    X(hipModuleUnload, (hipModule_t))                                                              \
    X(hipModuleGetFunction, (hipFunction_t *, hipModule_t, const char *))                          \
    X(hipModuleLaunchKernel, (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,     \
                              unsigned, unsigned, hipStream_t, void **, void **))                  \
    X(hipStreamCreate, (hipStream_t *))                                                            \
    X(hipStreamCreateWithFlags, (hipStream_t *, unsigned))                                         \
    X(hipStreamDestroy, (hipStream_t))                                                             \
    X(hipStreamSynchronize, (hipStream_t))                                                         \
    X(hipStreamQuery, (hipStream_t))                                                               \
    X(hipStreamWaitEvent, (hipStream_t, hipEvent_t, unsigned))                                     \
    X(hipEventCreateWithFlags, (hipEvent_t *, unsigned))                                           \
    X(hipEventDestroy, (hipEvent_t))                                                               \
    X(hipEventRecord, (hipEvent_t, hipStream_t))                                                   \
    X(hipEventSynchronize, (hipEvent_t))                                                           \
    X(hipEventQuery, (hipEvent_t))                                                                 \
    X(hipEventElapsedTime, (float *, hipEvent_t, hipEvent_t))                                      \
    X(hipMalloc, (void **, size_t))                                                                \
    X(hipFree, (void *))                                                                           \
    X(hipMallocManaged, (void **, size_t, unsigned))                                               \
    X(hipHostMalloc, (void **, size_t, unsigned))                                                  \
    X(hipHostFree, (void *))                                                                       \
    X(hipMallocAsync, (void **, size_t, hipStream_t))                                              \
    X(hipFreeAsync, (void *, hipStream_t))                                                         \
    X(hipHostRegister, (void *, size_t, unsigned))                                                 \
    X(hipHostUnregister, (void *))                                                                 \
    X(hipHostGetDevicePointer, (void **, void *, unsigned))                                        \
    X(hipMemGetInfo, (size_t *, size_t *))                                                         \
    X(hipMemcpy, (void *, const void *, size_t, int))                                              \
    X(hipMemcpyAsync, (void *, const void *, size_t, int, hipStream_t))                            \
    X(hipMemcpy2D, (void *, size_t, const void *, size_t, size_t, size_t, int))                    \
    X(hipMemcpyPeer, (void *, int, const void *, int, size_t))                                     \
    X(hipMemset, (void *, int, size_t))                                                            \
    X(hipMemsetD32Async, (void *, int, size_t, hipStream_t))                                       \
    X(hipDeviceCanAccessPeer, (int *, int, int))                                                   \
    X(hipDeviceEnablePeerAccess, (int, unsigned))

#define HIP_DECLARE(name, arguments) static int(*name) arguments __attribute__((unused));
HIP_FUNCTIONS(HIP_DECLARE)
#undef HIP_DECLARE
static const char *(*hipGetErrorName)(int);

static void *hip_symbol(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
    return symbol;
}

/* Opens HIP. Exits with status 77 if the HIP library or one of its functions is missing. */
static inline void hip_open(void) {
    const char *path = getenv("MGPU_RT_HIP");
    void *library = dlopen(path ? path : "libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
#define HIP_LOAD(name, arguments) *(void **)&name = hip_symbol(library, #name);
    HIP_FUNCTIONS(HIP_LOAD)
#undef HIP_LOAD
    *(void **)&hipGetErrorName = hip_symbol(library, "hipGetErrorName");
}

/* If a call does not return the expected code, prints the source line and the two codes, and ends
 * the test. */
#define EXPECT_CODE(wanted, call)                                                                  \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (wanted)) {                                                                   \
            fprintf(stderr, "%s:%d: %s = %d (%s), expected %d\n", __FILE__, __LINE__, #call,       \
                    code_, hipGetErrorName(code_), (wanted));                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT_CODE(0, call)
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
