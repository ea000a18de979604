/* The modules that HIP holds or held, and the images from which they were loaded.
 *
 * A module that the program has unloaded stays loaded until a load of the same bytes takes it.
 * Until then only the cache has it. A hit costs about 30 instructions, one of them locked. A module
 * that the program holds serves no other load. The address only finds the candidate: a JIT reuses
 * addresses, so the bytes decide. A load compares the bytes (0.05 to 0.1 µs for 5 KB, 0.2 with cold
 * caches). A load need not if the loader's tables proved, when the slot was filled, that the bytes
 * cannot change. The images of a lowered program are its constants. */
#ifndef MGPU_RT_MODULES_H
#define MGPU_RT_MODULES_H

#include "atomics.h"
#include "driver/hip.h"
#include "likely.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/slots.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "telemetry/call.h"

extern struct handle_map module_map;

/* The count of misses is the clock that finds the least recently used module: a hit reads it, only
 * a miss writes it. Under tables_lock. */
extern uint64_t module_clock;

static inline hipModule_t module_handle(const struct module *module) {
    return (hipModule_t)module->handle.key;
}

/* Returns the device of a module that the caller has not acquired: the entry may serve another
 * module by now. */
static inline int module_device(const struct module *module) {
    return load_acquire(&module->device);
}

static inline uint32_t module_version(const struct module *module) {
    return load_acquire(&module->version);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the state is the lower half");
static inline uint64_t module_version_and_state(uint32_t version, enum module_state state) {
    return (uint64_t)version << 32 | state;
}

/* Returns whether the entry serves a module: its version is odd. Under tables_lock. */
static inline bool module_is_known(const struct module *module) {
    return module_version(module) % 2 != 0;
}

static inline int module_state(const struct module *module) {
    return (int)load_acquire(&module->state);
}

/* Returns the state of a module that the program has unloaded, after asking HIP whether it still
 * has the module. */
static inline int module_state_asked(const struct module *module) {
    if (module_state(module) == MODULE_IDLE)
        (void)device_kept(module_device(module));
    return module_state(module);
}

/* Notes a use, by the thread that has acquired the module; others may read it at any time. */
static inline void module_note_use(struct module *module) {
    store_relaxed(&module->uses, module->uses + 1);
    store_relaxed(&module->last_use, load_relaxed(&module_clock));
}

/* Acquires a module that the program does not hold: it is the caller's until module_release. Called
 * under tables_lock, as another thread may give the entry to another module otherwise. */
static inline bool module_acquire(struct module *module) {
    uint32_t expected = MODULE_IDLE;
    return PROOF(known_module_is_taken_once, cas_acq_rel(&module->state, &expected, MODULE_LIVE));
}

/* Changes the version and state of an entry; returns false if they have changed. */
static inline bool module_change(struct module *module, uint64_t from, uint64_t to) {
    return PROOF(slots_module_is_taken_once, cas_acq_rel(&module->version_and_state, &from, to));
}

static inline void module_release(struct module *module) {
    PROOF_STEP(unloaded_module_is_free, store_release(&module->state, MODULE_IDLE));
}

/* Acquires the slot's module for a load that it serves; NULL if it does not. The thread acquires
 * the module, by the slot's version, before it looks at the bytes: no thread can evict it then. The
 * device belongs to that version: inserting a later module changes `version_and_state` before the
 * device. A module of another device is not touched, as its device may be reset at any time. */
static inline struct module *module_of_slot(struct thread *thread, const struct slot *slot,
                                            const void *image) {
    const uint64_t taken = MODULE_LIVE - MODULE_IDLE;
    struct module *module = slot->module;
    if (UNLIKELY(!module || slot->key != image))
        return NULL;
    if (UNLIKELY(
            !PROOF(slots_module_is_of_the_device, hip_current_device() == module_device(module))))
        return NULL;
    if (UNLIKELY(!PROOF_VALUE(
            slots_module_lives_on,
            module_change(module, slot->version_and_state, slot->version_and_state + taken),
            module_acquire(module))))
        return NULL;
    if (LIKELY(slot->constant ||
               PROOF(image_there_is_the_same, image_lies_at(&module->image, image)))) {
        module_note_use(module);
        thread->loaded = module;
        return module;
    }
    (void)module_change(module, slot->version_and_state + taken, slot->version_and_state);
    return NULL;
}

/* Returns the hit of a load: a module of this image that the thread had lately, and that the
 * program now holds.
 */
static inline struct module *module_lookup_thread(struct thread *thread, const void *image) {
    return module_of_slot(thread, slot_home(&thread->modules, NULL, image), image);
}

/* Returns a hit from the other slots that the image may have. */
struct module *module_probe_thread(struct thread *thread, const void *image);

/* A load that the image's first slot does not serve, and its outcome. */
struct load {
    struct thread *thread;
    const void *data; /* the program's image */
    hipModule_t handle;
    enum call_how how;  /* a hit, a miss, a bypass; refused if the image is damaged */
    hipError_t error;   /* HIP's */
    struct image image; /* NULL bytes if no thread has read it */
    int device;
    bool constant;       /* the image can neither change nor go away */
    unsigned char *copy; /* of the image, or NULL */
    const void *for_hip; /* the image that HIP is to load */
};

/* Returns true if one module may serve all loads of an image in turn: the next load would find what
 * the last one's kernels changed. */
bool module_may_share(const struct image *image);

/* Returns a module with these bytes on this device that the program did not hold, and now holds.
 * The image has moved, or another thread had the module. Returns NULL if there is none. */
struct module *module_lookup_table(const struct load *load);

/* Drops what is known of a handle that HIP has just handed out for a module that does not go into
 * the table. The program has unloaded the handle's earlier module by calling HIP: that entry is
 * invalid from here on. */
void module_invalidate(hipModule_t handle);

/* Inserts the module that HIP has just loaded for the program. Takes over load->copy. Returns false
 * without memory: only HIP knows the module then, and the copy stays. */
bool module_insert(const struct load *load);

/* A module that the table has lost and that HIP still has. */
struct removed_module {
    hipModule_t handle;
    unsigned char *copy; /* of the module's image, to be freed once HIP has unloaded it */
    size_t bytes;
    int device;
};

/* Removes the caller's module, which HIP is to unload: from here on its handle is unknown. Returns
 * false if it was unknown before. Under tables_lock. */
bool module_remove(struct module *module, struct removed_module *removed);

/* Has HIP unload the module; returns HIP's answer. */
hipError_t module_unload_removed(const struct removed_module *removed);

/* Returns the function of this handle, and its module; NULL: none is known. Looks through all
 * modules. Under tables_lock. */
const struct function *module_search(hipFunction_t handle, struct module **holder);

/* Lets no other load have the module once the program has unloaded it. Under tables_lock. */
void module_make_private(struct module *module);

/* Holds a module of the program's for a graph that launches its kernels. HIP does not unload the
 * module until it has been let go as often as held. */
void module_hold(struct module *module);
void module_let_go(struct module *module);
/* Holds the module that the program holds and that has this function; returns NULL if none is
 * known. */
struct module *module_hold_function(hipFunction_t function);
/* Finds the name of such a function. */
void module_function_name(hipFunction_t function, char *name, size_t room);

/* Removes all modules of a device that was reset, or all as HIP ends. */
void module_invalidate_all(int device);

/* The cost of all modules that HIP holds for the runtime, and of one, in bytes: the copy of its
 * image, and HIP's own part. The cost of one may be read by the thread that has acquired it, both
 * under tables_lock. */
extern size_t module_cost_all;
size_t module_cost(const struct module *module);

/* Returns the size of a copy, which is aligned to pages. */
enum { MODULE_PAGE = 4096 };
static inline size_t module_pages(size_t bytes) {
    return (bytes + MODULE_PAGE - 1) / MODULE_PAGE * MODULE_PAGE;
}

#endif
