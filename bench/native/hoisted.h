/* The functions that bench/native/hoisted.c calls, HIP's or those that stand for them. */
#ifndef BENCH_HOISTED_H
#define BENCH_HOISTED_H

#include "native.h"

#include <stdbool.h>
#include <string.h>

typedef void *handle;

static struct {
    int (*ModuleLoadData)(handle *module, const void *image);
    int (*ModuleGetFunction)(handle *function, handle module, const char *name);
    int (*ModuleLaunchKernel)(handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,
                              handle stream, void **params, void **extra);
    int (*StreamCreate)(handle *stream);
    int (*StreamSynchronize)(handle stream);
    int (*Malloc)(void **pointer, size_t size);
    int (*MemcpyAsync)(void *to, const void *from, size_t size, int kind, handle stream);
    int (*MemsetD32Async)(void *to, int value, size_t count, handle stream);
    int (*HostRegister)(void *pointer, size_t size, unsigned flags);
} hip;

static void check(int error, const char *what) {
    if (error != 0)
        fail("the driver refused", what);
}

#define CALL(name, ...) check(hip.name(__VA_ARGS__), "hip" #name)

#endif
