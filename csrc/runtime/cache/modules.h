/* The tables of modules and functions. */
#ifndef MGPU_RT_MODULES_H
#define MGPU_RT_MODULES_H

#include "base/abi.h"
#include "base/atomics.h"
#include "base/handles.h"
#include "image/image.h"

/* A kernel of a module. Never freed: a stale slot of a thread may still look at its name. When the
 * entry of its module serves another module, it serves the kernel of that name there. */
struct function {
    hipFunction_t handle; /* NULL: to be asked for */
    struct function *next;
    char name[];
};

static inline hipFunction_t function_handle(const struct function *function) {
    return load_relaxed(&function->handle);
}

enum module_state {
    MODULE_GONE, /* HIP has it back, or somebody else had: nothing is known of the handle */
    MODULE_FREE, /* the program has unloaded it; it is the cache's alone, and loaded */
    MODULE_LIVE, /* loaded for the program, once */
};

/* A module that HIP holds, or held. Each load of the program's has one to itself, as with stock: a
 * module that the program holds is never handed out a second time, since only the program knows
 * what else it does with it. Never freed; when HIP hands the same handle out again, the entry
 * serves the new module, in a new generation. */
struct module {
    struct handle handle;
    struct module *next_image; /* chain of the image table, under tables_lock */
    struct image image;        /* its bytes are there as long as it is not GONE */
    unsigned char *copy;       /* where they are, unless they are a constant of the program's */
    uint64_t hash;
    uint64_t generation; /* counts the modules that the entry has served */
    int device;
    int state;               /* enum module_state; changed by compare-and-swap */
    bool shared;             /* may be kept and handed out again: it has no writable globals */
    bool pinned;             /* no limit evicts it */
    uint64_t uses, last_use; /* written by who has taken it */
    struct function *functions;
};

/* All that follow are guarded by tables_lock. */
extern struct handle_map registry_modules;

/* Counts the misses, the clock by which the least recently used is found: a hit reads it, nothing
 * else writes it. */
extern uint64_t registry_clock;

static inline uint64_t registry_now(void) {
    return load_relaxed(&registry_clock);
}

static inline hipModule_t module_handle(const struct module *module) {
    return (hipModule_t)module->handle.key;
}

/* Of a module that the caller has not taken: the entry may come to serve another one meanwhile. */
static inline int module_device(const struct module *module) {
    return load_relaxed(&module->device);
}

static inline uint64_t module_generation(const struct module *module) {
    return load_acquire(&module->generation);
}

static inline int module_state(const struct module *module) {
    return load_acquire(&module->state);
}

/* By who has taken it; others may read meanwhile. */
static inline void module_note_use(struct module *module) {
    store_relaxed(&module->uses, module->uses + 1);
    store_relaxed(&module->last_use, registry_now());
}

/* Takes a module that the program does not hold: it is the caller's until module_put. */
static inline bool module_take(struct module *module) {
    int expected = MODULE_FREE;
    return cas_acq_rel(&module->state, &expected, MODULE_LIVE);
}

static inline void module_put(struct module *module) {
    store_release(&module->state, MODULE_FREE);
}

/* Enters a module that was just loaded for the program, LIVE. NULL without memory. */
struct module *registry_add(hipModule_t handle, const struct image *image, uint64_t hash,
                            int device, bool shared);

/* The calls below need tables_lock. */

/* Takes a module with these bytes on this device that the program does not hold; NULL if there is
 * none. */
struct module *registry_take_image(const struct image *image, uint64_t hash, int device);

/* Takes a module out whatever its state is: from here on nothing is known of its handle. */
void registry_forget(struct module *module);

/* The same of all modules of a device; takes tables_lock by itself. */
void registry_forget_device(int device);

/* Bytes of the images in the table. */
extern size_t registry_bytes;

/* NULL if the kernel was not asked for yet. */
struct function *registry_find_function(const struct module *module, const char *name);
/* Enters what HIP answered; NULL without memory. */
struct function *registry_set_function(struct module *module, const char *name,
                                       hipFunction_t handle);

#endif
