/* The built-in policy: what serves where no Python can be had. */
#include "hip.h"
#include "memory.h"
#include "python.h"

static int module_load(const void *image, size_t size, int device, void **module) {
    (void)size;
    (void)device;
    return hip.ModuleLoadData((hipModule_t *)module, image);
}

static int module_unload(void *module) {
    return hip.ModuleUnload(module);
}

static int function_get(void *module, const char *name, void **function) {
    return hip.ModuleGetFunction((hipFunction_t *)function, module, name);
}

static int stream_create(int device, void **stream) {
    (void)device;
    return hip.StreamCreate((hipStream_t *)stream);
}

static int stream_destroy(void *stream) {
    return hip.StreamDestroy(stream);
}

static int memory_alloc(int device, size_t bytes, void **ptr) {
    (void)device;
    return hip.Malloc(ptr, bytes);
}

static int memory_free(void *ptr) {
    return hip.Free(ptr);
}

static void shutdown(void) {}

const struct mgpu_policy policy_builtin = {
    .module_load = module_load,
    .module_unload = module_unload,
    .function_get = function_get,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_trim = memory_give_back_some,
    .shutdown = shutdown,
};
