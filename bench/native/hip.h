/* The functions of HIP that measuring programs call directly. CALL ends the program at the first
 * error. */
#ifndef BENCH_HIP_H
#define BENCH_HIP_H

#include "native.h"

typedef void *handle;

// clang-format off
#define HIP_FUNCTIONS(FN)                                                                          \
    FN(ModuleLoadData, (handle *module, const void *image))                                        \
    FN(ModuleGetFunction, (handle *function, handle module, const char *name))                     \
    FN(ModuleLaunchKernel, (handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,    \
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,   \
                            handle stream, void **params, void **extra))                           \
    FN(StreamCreate, (handle *stream))                                                             \
    FN(StreamSynchronize, (handle stream))                                                         \
    FN(EventCreateWithFlags, (handle *event, unsigned flags))                                      \
    FN(EventRecord, (handle event, handle stream))                                                 \
    FN(StreamWaitEvent, (handle stream, handle event, unsigned flags))                             \
    FN(Malloc, (void **pointer, size_t size))                                                      \
    FN(MemcpyAsync, (void *to, const void *from, size_t size, int kind, handle stream))            \
    FN(MemsetD32Async, (void *to, int value, size_t count, handle stream))
// clang-format on

enum { MEMCPY_DEFAULT = 4, EVENT_DISABLE_TIMING = 2 };

static struct {
#define DECLARE(name, parameters) int(*name) parameters;
    HIP_FUNCTIONS(DECLARE)
#undef DECLARE
} hip;

static inline void open_hip(const char *path) {
    void *library = open_library(path);
#define RESOLVE(name, parameters) *(void **)&hip.name = symbol(library, "hip" #name);
    HIP_FUNCTIONS(RESOLVE)
#undef RESOLVE
}

static inline void check(int error, const char *what) {
    if (error != 0)
        fail("the driver refused", what);
}

#define CALL(name, ...) check(hip.name(__VA_ARGS__), "hip" #name)

#endif
