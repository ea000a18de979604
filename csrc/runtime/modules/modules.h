/* The modules that HIP holds or held, and the images from which HIP loaded them.
 *
 * A module that the program has unloaded stays loaded in HIP. The next load of the same bytes gets
 * this module. A hit takes about 30 instructions, and one of these instructions is locked. A module
 * that the program holds serves no other load. A table that all threads read without a lock has a
 * number for each image's address, and the number selects the thread's slot. So the cost of a hit
 * does not depend on the number of images. A comparison of the bytes decides, because a JIT reuses
 * addresses. The comparison takes 0.05 to 0.1
 * µs for 5 KB, or 0.2 µs with cold caches. A hit does not compare constant bytes: when the library
 * filled the entry, the loader's tables proved that these bytes cannot change. The images of a
 * lowered program are constants of the program. */
#ifndef MGPU_RT_MODULES_H
#define MGPU_RT_MODULES_H

#include "driver/hip.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "telemetry/call.h"

extern struct handle_map module_map;

/* Contains a struct known_image for each address from which the program has loaded. */
extern struct handle_map known_images;

/* The clock by which eviction finds the least recently used module. The clock counts misses: a miss
 * advances the clock, and a hit only reads the clock. Under tables_lock. */
extern uint64_t module_clock;

static inline hipModule_t module_handle(const struct module *module) {
    return (hipModule_t)module->handle.key;
}

/* Returns the device of the entry's module. If the caller has not acquired the module, the entry
 * may already serve another module. */
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

/* Returns whether the entry serves a module now. The version of such an entry is odd. Under
 * tables_lock. */
static inline bool module_is_known(const struct module *module) {
    return module_version(module) % 2 != 0;
}

static inline int module_state(const struct module *module) {
    return (int)load_acquire(&module->state);
}

/* Returns the state of a module. If the program has unloaded the module, first checks whether the
 * module's device was reset. */
static inline int module_state_asked(const struct module *module) {
    if (module_state(module) == MODULE_IDLE)
        (void)device_kept(module_device(module));
    return module_state(module);
}

/* Records that the calling thread uses the module, which the thread has acquired. Other threads may
 * read the record at any time. */
static inline void module_note_use(struct module *module) {
    store_relaxed(&module->uses, module->uses + 1);
    store_relaxed(&module->last_use, load_relaxed(&module_clock));
}

/* Acquires a module that the program does not hold. The caller owns the module until
 * module_release. The caller must hold tables_lock: without the lock, another thread could give the
 * entry to another module. */
static inline bool module_acquire(struct module *module) {
    uint32_t expected = MODULE_IDLE;
    return PROOF(known_module_is_taken_once, cas_acq_rel(&module->state, &expected, MODULE_LIVE));
}

/* Changes the version and state of an entry from `from` to `to`. Returns false, and changes
 * nothing, if the entry's version and state differ from `from`. */
static inline bool module_change(struct module *module, uint64_t from, uint64_t to) {
    return PROOF(slots_module_is_taken_once, cas_acq_rel(&module->version_and_state, &from, to));
}

static inline void module_release(struct module *module) {
    PROOF_STEP(unloaded_module_is_free, store_release(&module->state, MODULE_IDLE));
}

/* Acquires and returns the slot's module if the module serves a load of the image; otherwise
 * returns NULL. One compare-and-swap checks the slot's version and acquires the module. Only then
 * does the thread read the image's bytes, because no thread can evict an acquired module. When a
 * module ends, the entry's version changes before the entry gets the next module's device. So if
 * the slot's version is still current, the thread has read the device of the slot's module. The
 * thread never reads a module of another device, because that device may be reset at any time. */
static inline struct module *module_of_slot(struct thread *thread, const struct module_slot *slot,
                                            const struct known_image *known, const void *image,
                                            int device) {
    const uint64_t taken = MODULE_LIVE - MODULE_IDLE;
    struct module *module = slot->module;
    const bool acquired =
        module && PROOF(slots_module_is_of_the_device, device == module_device(module)) &&
        PROOF_VALUE(slots_module_lives_on,
                    module_change(module, slot->version_and_state, slot->version_and_state + taken),
                    module_acquire(module));
    if (UNLIKELY(!acquired))
        return NULL;
    if (LIKELY(known->constant ||
               PROOF(image_there_is_the_same, image_lies_at(&module->image, image)))) {
        module_note_use(module);
        thread->loaded = module;
        return module;
    }
    (void)module_change(module, slot->version_and_state + taken, slot->version_and_state);
    return NULL;
}

/* Acquires and returns the module that the thread last got for this image. Returns NULL if there is
 * none, or if the module serves no load on the thread's device now. */
static inline struct module *module_lookup_thread(struct thread *thread, const void *image,
                                                  int device) {
    const struct known_image *known = handle_find(&known_images, image);
    if (UNLIKELY(!known))
        return NULL;
    const size_t number = load_acquire(&known->number);
    if (UNLIKELY(number >= thread->module_slots))
        return NULL;
    return module_of_slot(thread, &thread->modules[number], known, image, device);
}

/* A load for which the thread's slot has no module, and the outcome of the load. */
struct load {
    struct thread *thread;
    const void *data; /* the program's image */
    hipModule_t handle;
    enum call_how how;  /* a hit, a miss or a bypass */
    hipError_t error;   /* HIP's */
    struct image image; /* image.bytes is NULL if the library has not read the image */
    int device;
    bool constant;       /* the image can neither change nor be unmapped */
    bool shared;         /* the module may serve later loads: they would see no change of globals */
    unsigned char *copy; /* the copy of the image, or NULL */
};

/* Returns an idle module of the load's image on the load's device; from now on the program holds
 * the module. The function serves an image at a new address, or an image whose module another
 * thread used. Returns NULL if there is no such module. */
struct module *module_lookup_table(const struct load *load);

/* Returns true if the image at an address is a constant from which the program has loaded before;
 * *image then describes it. Lock-free. */
bool module_image_is_constant(const void *data, struct image *image);

/* Invalidates the table's entry for a handle. HIP has just returned this handle for a new module
 * that does not enter the table, so the entry's old module no longer exists. */
void module_invalidate(hipModule_t handle);

/* Inserts the module that HIP has just loaded for the program. Takes ownership of load->copy.
 * Returns false if there is no memory for an entry: the library then does not know the module, and
 * never frees the copy. */
bool module_insert(const struct load *load);

/* A module that HIP holds but the table no longer contains. */
struct removed_module {
    hipModule_t handle;
    unsigned char *copy; /* the copy of the module's image, to be freed once HIP has unloaded the
                          * module */
};

/* Removes a module that the caller owns from the table. The caller must then unload the module from
 * HIP. Returns false if the handle was unknown before. Under tables_lock. */
bool module_remove(struct module *module, struct removed_module *removed);

/* Calls HIP to unload the module; returns HIP's answer. */
hipError_t module_unload_removed(const struct removed_module *removed);

/* Returns the function of this handle, and stores the function's module in *holder. Returns NULL if
 * the function is unknown. Searches all modules. Under tables_lock. */
const struct function *module_search(hipFunction_t handle, struct module **holder);

/* Keeps a module loaded for a graph that launches the module's kernels. HIP does not unload the
 * module until module_let_go was called as often as module_hold. If the program has unloaded a
 * private module in the meantime, the last module_let_go makes HIP unload it. */
void module_hold(struct module *module);
void module_let_go(struct module *module);
/* Does the work of module_hold for the module that contains this function. Returns NULL if the
 * program holds no known module with this function. */
struct module *module_hold_function(hipFunction_t function);

/* Removes all modules of a device that was reset, or all modules when HIP ends. */
void module_invalidate_all(int device);

/* module_cost_all is the cost in bytes of all modules that HIP holds for the library. A module's
 * cost is the size of the image's copy plus HIP's memory for the module. A thread reads costs under
 * tables_lock; the thread that has acquired a module may read the module's cost without the lock.
 */
extern size_t module_cost_all;
size_t module_cost(const struct module *module);

/* Returns the size of a copy, rounded up to pages. */
enum { MODULE_PAGE = 4096 };
static inline size_t module_pages(size_t bytes) {
    return (bytes + MODULE_PAGE - 1) / MODULE_PAGE * MODULE_PAGE;
}

/* ---- modules_limit.c ---- */

/* Unloads idle modules, least recently used first, if all modules cost more than the limit. The
 * library calls this function after a miss. */
void module_enforce_limit(void);

/* Pins or unpins a module. The library does not evict a pinned module at a limit, but the manager
 * and mgpu_rt_empty_cache can evict the module. */
void module_pin(void *handle, int pinned);

extern const struct cache module_cache;

/* ---- image_advice.c ---- */

/* Reports that the driver refused an image on a device. Does not call HIP, so HIP's last error is
 * preserved. */
void advise_image(const char *expression, hipError_t error, const struct image *image, int device);

/* Returns true if the image is for this device of AMD's, and has a version that HIP accepts.
 * Returns false if the library cannot tell. A separate thread asks HIP for the device's target, so
 * the calling thread's last error is unchanged. */
bool image_suits_device(const struct image *image, int device);

#endif
