#include "calls.h"
#include "hipstub.h"
#include "image.h"
#include "kernel.h"
#include "log.h"
#include "memory.h"
#include "mode.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

hipError_t emu_hipModuleLoadData(hipModule_t *module, const void *image) {
    unsigned char *copy;
    size_t bytes;
    if (module == NULL || image == NULL)
        return hipErrorInvalidValue;
    stub_unlock(); /* releases the lock, because the kernels' library calls the stub */
    stub_load_kernels();
    stub_lock();
    hipError_t error = image_copy(image, &copy, &bytes);
    if (error != hipSuccess)
        return error;
    *module = object_again(MODULE);
    if (*module == NULL)
        *module = object_new(MODULE, sizeof **module);
    (*module)->functions = NULL;
    (*module)->image = copy;
    (*module)->bytes = bytes;
    return hipSuccess;
}

void module_drop_image(hipModule_t module) {
    if (module->object.live || module->launches != 0)
        return;
    free(module->image);
    module->image = NULL;
}

static void drop_globals(hipModule_t module) {
    for (struct global *global = module->globals, *next; global != NULL; global = next) {
        next = global->next;
        memory_drop_global(global->address);
        free(global->name);
        free(global);
    }
    module->globals = NULL;
}

hipError_t emu_hipModuleUnload(hipModule_t module) {
    if (!object_check("hipModuleUnload", MODULE, module))
        return hipErrorNotFound;
    for (struct ihipModuleSymbol_t *f = module->functions; f != NULL; f = f->next)
        object_kill(&f->object);
    object_end(&module->object);
    if (module->launches == 0) {
        drop_globals(module);
        object_release(&module->object);
    }
    module_drop_image(module);
    return hipSuccess;
}

hipError_t emu_hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    if (function == NULL || name == NULL)
        return hipErrorInvalidValue;
    if (!object_check("hipModuleGetFunction", MODULE, module) ||
        !image_has_kernel(module->image, module->bytes, name))
        return hipErrorNotFound;
    struct ihipModuleSymbol_t *found = module->functions;
    while (found != NULL && strcmp(found->name, name) != 0)
        found = found->next;
    if (found == NULL) {
        found = object_again(FUNCTION);
        if (found == NULL)
            found = object_new(FUNCTION, sizeof *found);
        found->module = module;
        found->name = strdup(name);
        found->next = module->functions;
        module->functions = found;
    }
    *function = found;
    return hipSuccess;
}

struct global *module_global(hipModule_t module, const char *name) {
    for (struct global *global = module->globals; global != NULL; global = global->next)
        if (strcmp(global->name, name) == 0)
            return global;
    size_t size;
    const unsigned char *value;
    if (!image_global(module->image, module->bytes, SHT_SYMTAB, name, &size, &value))
        return NULL;
    struct global *global = malloc(sizeof *global);
    void *address = memory_add_global(size, module->object.device);
    *global = (struct global){strdup(name), address, size, module->globals};
    if (value != NULL)
        memcpy(global->address, value, size);
    module->globals = global;
    return global;
}

hipError_t emu_hipModuleGetGlobal(void **address, size_t *bytes, hipModule_t module,
                                  const char *name) {
    if (name == NULL || (address == NULL && bytes == NULL))
        return hipErrorInvalidValue;
    struct global *global = NULL;
    size_t size;
    const unsigned char *value;
    if (object_check("hipModuleGetGlobal", MODULE, module) &&
        image_global(module->image, module->bytes, SHT_DYNSYM, name, &size, &value))
        global = module_global(module, name);
    if (global == NULL)
        return hipErrorNotFound;
    if (address != NULL)
        *address = global->address;
    if (bytes != NULL)
        *bytes = global->bytes;
    return hipSuccess;
}

hipError_t emu_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                  hipFunction_t function,
                                                                  int threads,
                                                                  size_t shared_bytes) {
    enum { MOST_THREADS_AT_ONCE = 2048 };
    (void)shared_bytes;
    if (blocks == NULL || threads <= 0)
        return hipErrorInvalidValue;
    if (!object_check("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", FUNCTION, function))
        return hipErrorInvalidDeviceFunction;
    *blocks = MOST_THREADS_AT_ONCE / threads;
    return hipSuccess;
}
