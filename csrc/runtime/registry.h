/* The tables of modules and functions that the fast path reads and the policy fills. */
#ifndef MGPU_RT_REGISTRY_H
#define MGPU_RT_REGISTRY_H

#include "handles.h"
#include "image.h"
#include "thread.h"

#include <pthread.h>

/* A kernel of a module. Never freed: a stale slot of a thread may still look at its name. When the
 * entry of its module serves another module, it serves the kernel of that name there. */
struct function {
    hipFunction_t handle; /* NULL: to be asked for */
    struct function *next;
    char name[];
};

static inline hipFunction_t function_handle(const struct function *function) {
    return __atomic_load_n(&function->handle, __ATOMIC_RELAXED);
}

/* A module that HIP holds, or held. Found by its handle (at any time, without a lock) or by its
 * image (under registry_lock). Never freed; when HIP hands the same handle out again, the entry
 * serves the new module. */
struct module {
    struct handle handle;
    struct module *next_image; /* chain of the image table */
    struct image image;        /* the library's own copy of the bytes, while the module is loaded */
    uint64_t hash;
    int device;
    bool loaded;
    bool shared;             /* equal images may be served by it: it has no writable globals */
    uint64_t loads, unloads; /* those that no slot of a thread counts (any more) */
    struct function *functions;
};

/* Guards the tables below and the slots' `module` fields. Held for short stretches of this
 * library's own code only: never while HIP, Python or the loader is called, so no thread that
 * holds the GIL or the loader's lock can wait here for one that wants it. */
extern pthread_mutex_t registry_lock;
extern struct handle_map registry_modules;

/* Counts the evictions; a slot that was filled before the last one is looked up anew. */
extern uint64_t registry_epoch;

static inline hipModule_t module_handle(const struct module *module) {
    return (hipModule_t)module->handle.key;
}

/* The calls below need registry_lock. */

/* A loaded, shared module with these bytes on this device, or NULL. */
struct module *registry_find_image(const struct image *image, uint64_t hash, int device);

/* Enters a module. Takes over image->bytes (from malloc). NULL without memory. */
struct module *registry_add(hipModule_t handle, const struct image *image, uint64_t hash,
                            int device, bool shared);

/* How often the program has loaded and unloaded the module, over all threads. */
struct module_uses {
    uint64_t loads, unloads;
};
struct module_uses registry_uses(const struct module *module);

static inline bool registry_held(const struct module *module) {
    const struct module_uses uses = registry_uses(module);
    return uses.loads > uses.unloads;
}

/* Moves a slot's counts to its module, before the slot is used for another. */
void registry_fold(struct module_slot *slot);

/* Takes a module out, if the program does not hold it. After that no thread can get it any more and
 * the caller unloads it. False if it is held or already out. */
bool registry_retire(struct module *module);

/* Takes a module out that its only user is done with. */
void registry_remove(struct module *module);

/* NULL if the kernel was not asked for yet. */
struct function *registry_find_function(const struct module *module, const char *name);
/* Enters what HIP answered; NULL without memory. */
struct function *registry_set_function(struct module *module, const char *name,
                                       hipFunction_t handle);

#endif
