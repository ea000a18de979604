#include "cache/modules.h"
#include "base/state.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGE_BUCKETS = 1024 };

struct handle_map registry_modules = HANDLE_MAP(struct module);
uint64_t registry_clock = 1;
size_t registry_bytes;

static struct module *images[IMAGE_BUCKETS];

static bool has_image(const struct module *module, const struct image *image, uint64_t hash,
                      int device) {
    return module->hash == hash && module->device == device && module->image.size == image->size &&
           memcmp(module->image.bytes, image->bytes, image->size) == 0;
}

/* Only one that is free is compared: a program may hold hundreds of modules of one image. */
struct module *registry_take_image(const struct image *image, uint64_t hash, int device) {
    for (struct module *module = images[hash % IMAGE_BUCKETS]; module; module = module->next_image)
        if (module_state(module) == MODULE_FREE && has_image(module, image, hash, device) &&
            module_take(module))
            return module;
    return NULL;
}

static void enter_image(struct module *module) {
    struct module **bucket = &images[module->hash % IMAGE_BUCKETS];
    module->next_image = *bucket;
    *bucket = module;
}

static void leave_image(struct module *module) {
    struct module **link = &images[module->hash % IMAGE_BUCKETS];
    while (*link && *link != module)
        link = &(*link)->next_image;
    if (*link)
        *link = module->next_image;
}

struct module *registry_add(hipModule_t handle, const struct image *image, uint64_t hash,
                            int device, bool shared) {
    struct module *module = handle_enter(&registry_modules, handle);
    if (!module)
        return NULL;
    pthread_mutex_lock(&tables_lock);
    registry_forget(module); /* unless it is new: somebody else has unloaded that module */
    store_relaxed(&registry_clock, registry_clock + 1);
    module->image = *image;
    module->hash = hash;
    store_relaxed(&module->device, device);
    module->shared = shared;
    module->pinned = false;
    module->uses = 1;
    module->last_use = registry_now();
    registry_bytes += image->size;
    if (shared)
        enter_image(module);
    store_release(&module->generation, module->generation + 1);
    store_release(&module->state, MODULE_LIVE);
    pthread_mutex_unlock(&tables_lock);
    return module;
}

void registry_forget(struct module *module) {
    if (!module->image.bytes)
        return; /* out already */
    store_release(&module->generation, module->generation + 1);
    store_release(&module->state, MODULE_GONE);
    for (struct function *function = module->functions; function; function = function->next)
        store_relaxed(&function->handle, NULL);
    if (module->shared)
        leave_image(module);
    registry_bytes -= module->image.size;
    free(module->copy);
    module->copy = NULL;
    module->image.bytes = NULL;
}

void registry_forget_device(int device) {
    pthread_mutex_lock(&tables_lock);
    for (struct module *module = handle_first(&registry_modules); module;
         module = (struct module *)module->handle.next)
        if (of_device(device, module->device))
            registry_forget(module);
    pthread_mutex_unlock(&tables_lock);
}

static struct function *find_function(const struct module *module, const char *name) {
    struct function *function = module->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    return function;
}

struct function *registry_find_function(const struct module *module, const char *name) {
    struct function *function = find_function(module, name);
    return function && function->handle ? function : NULL;
}

struct function *registry_set_function(struct module *module, const char *name,
                                       hipFunction_t handle) {
    struct function *function = find_function(module, name);
    if (!function) {
        const size_t length = strlen(name) + 1;
        function = malloc(sizeof *function + length);
        if (!function)
            return NULL;
        memcpy(function->name, name, length);
        function->next = module->functions;
        module->functions = function;
    }
    store_release(&function->handle, handle); /* read without the lock */
    return function;
}
