/* The mgpu* functions that a lowered launch calls, looked up by name in a runtime. */
#ifndef BENCH_RUNTIME_H
#define BENCH_RUNTIME_H

#include "native.h"

struct runtime {
    void *(*ModuleLoad)(const void *image, size_t size);
    void (*ModuleUnload)(void *module);
    void *(*ModuleGetFunction)(void *module, const char *name);
    void *(*StreamCreate)(void);
    void (*StreamDestroy)(void *stream);
    void (*StreamSynchronize)(void *stream);
    void (*LaunchKernel)(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                         intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t smem,
                         void *stream, void **params, void **extra, size_t params_count);
};

static inline void resolve_runtime(struct runtime *runtime, void *library) {
#define RESOLVE(name) *(void **)&runtime->name = symbol(library, "mgpu" #name)
    RESOLVE(ModuleLoad);
    RESOLVE(ModuleUnload);
    RESOLVE(ModuleGetFunction);
    RESOLVE(StreamCreate);
    RESOLVE(StreamDestroy);
    RESOLVE(StreamSynchronize);
    RESOLVE(LaunchKernel);
#undef RESOLVE
}

#endif
