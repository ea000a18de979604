#include "registry.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGE_BUCKETS = 256 };

pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
struct handle_map registry_modules;
uint64_t registry_epoch = 1;

static struct module *images[IMAGE_BUCKETS];

struct module *registry_find_image(const struct image *image, uint64_t hash, int device) {
    for (struct module *module = images[hash % IMAGE_BUCKETS]; module; module = module->next_image)
        if (module->hash == hash && module->device == device && module->image.size == image->size &&
            memcmp(module->image.bytes, image->bytes, image->size) == 0)
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
    struct module *module = handle_find(&registry_modules, handle);
    const bool known = module != NULL;
    if (known && module->loaded)
        registry_remove(module); /* the program had HIP unload it behind our back */
    if (!known)
        module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    module->handle.key = handle;
    module->image = *image;
    module->hash = hash;
    module->device = device;
    module->shared = shared;
    module->loads = module->unloads = 0;
    module->loaded = true;
    if (!known)
        handle_add(&registry_modules, &module->handle);
    if (shared)
        enter_image(module);
    return module;
}

struct module_uses registry_uses(const struct module *module) {
    struct module_uses uses = {module->loads, module->unloads};
    for (const struct thread *thread = thread_list; thread; thread = thread->next)
        for (size_t i = 0; i < MODULE_SLOTS; i++) {
            const struct module_slot *slot = &thread->modules[i];
            if (slot->module == module) {
                uses.unloads += __atomic_load_n(&slot->unloads, __ATOMIC_SEQ_CST);
                uses.loads += __atomic_load_n(&slot->loads, __ATOMIC_SEQ_CST);
            }
        }
    return uses;
}

void registry_fold(struct module_slot *slot) {
    if (slot->module) {
        slot->module->loads += slot->loads;
        slot->module->unloads += slot->unloads;
    }
    memset(slot, 0, sizeof *slot);
}

void registry_remove(struct module *module) {
    /* From here on every slot is checked against the tables before it is believed. */
    __atomic_fetch_add(&registry_epoch, 1, __ATOMIC_SEQ_CST);
    for (struct thread *thread = thread_list; thread; thread = thread->next)
        for (size_t i = 0; i < MODULE_SLOTS; i++)
            if (thread->modules[i].module == module)
                thread->modules[i].module = NULL;
    for (struct function *function = module->functions; function; function = function->next)
        function->handle = NULL;
    if (module->shared)
        leave_image(module);
    module->loaded = false;
    free((void *)module->image.bytes);
    module->image.bytes = NULL;
}

bool registry_retire(struct module *module) {
    if (!module->loaded)
        return false;
    /* A thread that hits counts its load first and then reads the epoch (module.c); here the epoch
     * is raised first and the loads are summed after. Whichever comes first, one sees the other. */
    __atomic_fetch_add(&registry_epoch, 1, __ATOMIC_SEQ_CST);
    if (registry_held(module))
        return false;
    registry_remove(module);
    return true;
}

static struct function *find_name(const struct module *module, const char *name) {
    struct function *function = module->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    return function;
}

struct function *registry_find_function(const struct module *module, const char *name) {
    struct function *function = find_name(module, name);
    return function && function->handle ? function : NULL;
}

struct function *registry_set_function(struct module *module, const char *name,
                                       hipFunction_t handle) {
    struct function *function = find_name(module, name);
    if (!function) {
        const size_t length = strlen(name) + 1;
        function = malloc(sizeof *function + length);
        if (!function)
            return NULL;
        memcpy(function->name, name, length);
        function->next = module->functions;
        module->functions = function;
    }
    __atomic_store_n(&function->handle, handle, __ATOMIC_RELEASE); /* read without the lock */
    return function;
}
