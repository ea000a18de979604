/* mgpuModuleLoad, mgpuModuleUnload, mgpuModuleLoadJIT.
 *
 * A hit costs about 30 instructions and one locked addition to the thread's own memory. The address
 * only finds the candidate: a JIT reuses addresses, so the bytes decide. They are compared (0.05 to
 * 0.1 µs for 5 KB, 0.2 with cold caches) unless the loader's tables proved, when the slot was
 * filled, that they cannot have changed since: those of a lowered program are its constants. */
#include "advice.h"
#include "cuda.h"
#include "lazy.h"
#include "mapped.h"
#include "metadata.h"
#include "policy.h"
#include "python.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

static const char load_expression[] = "hipModuleLoadData(&module, data)";
static const char unload_expression[] = "hipModuleUnload(module)";

static struct advice damaged_image = {
    .text = "the image at %p cannot be loaded: %s. Was the object that holds it built and linked "
            "completely, for a GPU?",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice unknown_unload = {
    .text = "mgpuModuleUnload was given %p, which no mgpuModuleLoad returned or which was unloaded "
            "before"};
static struct advice no_jit = {
    .text = "mgpuModuleLoadJIT was given %s: HIP cannot compile it when the program runs. Lower "
            "with gpu-module-to-binary{format=bin}",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice null_unload = {
    .text = "mgpuModuleUnload was given a null module, which no mgpuModuleLoad returned",
    .follows = NULL_MODULE};

static size_t home_of(const void *image) {
    return slot_home((uintptr_t)image, MODULE_SLOT_BITS);
}

/* The slot of a window that is to serve an image: its own, else one that serves none, else the
 * first. */
static struct module_slot *choose_slot(struct thread *thread, const void *image) {
    const size_t home = home_of(image);
    struct module_slot *chosen = &thread->modules[home];
    for (size_t i = 0; i < SLOT_WINDOW; i++) {
        struct module_slot *slot = &thread->modules[(home + i) % MODULE_SLOTS];
        if (slot->image == image)
            return slot;
        if (chosen->module && !slot->module)
            chosen = slot;
    }
    return chosen;
}

/* Makes a slot serve a module, with one load counted. Under registry_lock. */
static void bind(struct thread *thread, struct module_slot *slot, const void *image,
                 struct module *module) {
    if (slot->module != module || slot->image != image) {
        registry_fold(slot);
        for (size_t i = 0; i < FUNCTION_SLOTS; i++)
            if (thread->functions[i].holder == slot)
                thread->functions[i].epoch = 0;
    }
    slot->image = image;
    slot->module = module;
    slot->handle = module_handle(module);
    slot->epoch = __atomic_load_n(&registry_epoch, __ATOMIC_SEQ_CST);
    slot->loads++;
    thread->loaded = slot;
}

static hipModule_t load_directly(const void *data) {
    hipModule_t module = NULL;
    stats_bypass(CACHE_MODULES);
    lazy_end();
    const hipError_t error = hip.ModuleLoadData(&module, data);
    if (error != hipSuccess) {
        const struct image image = image_describe(data);
        advise_image(load_expression, error, &image);
        return NULL;
    }
    return module;
}

/* The module keeps its own copy of the image: HIP reads it as long as the module lives, which is
 * longer than a JIT keeps its own. Page-aligned, as the loader of a file would have it. Where HIP
 * needs another one than the program's, that follows in the same block. */
static unsigned char *copy_image(const struct image *image, const unsigned char **for_hip) {
    const size_t page = 4096, room = (image->size + page - 1) / page * page;
    const bool changed = metadata_needs_copy(image, hip_version);
    unsigned char *bytes = aligned_alloc(page, changed ? 2 * room : room);
    if (!bytes)
        return NULL;
    memcpy(bytes, image->bytes, image->size);
    *for_hip = bytes;
    if (changed) {
        memcpy(bytes + room, image->bytes, image->size);
        metadata_drop_queue(bytes + room, image->size);
        *for_hip = bytes + room;
    }
    return bytes;
}

/* Enters a module that was just loaded, unless another thread was faster with the same image: then
 * that one serves and ours is to be unloaded. */
static hipModule_t enter(struct thread *thread, struct module_slot *slot, const void *data,
                         const struct image *image, uint64_t hash, int device, hipModule_t loaded) {
    const bool shared = !image->writable;
    pthread_mutex_lock(&registry_lock);
    struct module *module = shared ? registry_find_image(image, hash, device) : NULL;
    const bool duplicate = module != NULL;
    if (!duplicate)
        module = registry_add(loaded, image, hash, device, shared);
    if (module && shared)
        bind(thread, slot, data, module);
    else if (module)
        module->loads++;
    const hipModule_t handle = module ? module_handle(module) : loaded;
    pthread_mutex_unlock(&registry_lock);
    if (duplicate) {
        policy_get()->module_unload(loaded);
        free((void *)image->bytes);
    }
    return handle;
}

static hipModule_t load_new(struct thread *thread, struct module_slot *slot, const void *data,
                            struct image image, uint64_t hash, int device) {
    stats_miss(CACHE_MODULES);
    const unsigned char *for_hip;
    unsigned char *bytes = copy_image(&image, &for_hip);
    if (!bytes)
        return load_directly(data);
    void *loaded = NULL;
    lazy_note_image(&image);
    const hipError_t error = policy_get()->module_load(for_hip, image.size, device, &loaded);
    runtime_register_exit();
    if (error != hipSuccess) {
        advise_image(load_expression, error, &image);
        free(bytes);
        return NULL;
    }
    image.bytes = bytes;
    return enter(thread, slot, data, &image, hash, device, loaded);
}

/* The slot is right but an eviction has happened since, or the image has moved: the tables know. */
static hipModule_t find_loaded(struct thread *thread, struct module_slot *slot, const void *data,
                               const struct image *image, uint64_t hash, int device) {
    pthread_mutex_lock(&registry_lock);
    struct module *module = registry_find_image(image, hash, device);
    if (module)
        bind(thread, slot, data, module);
    pthread_mutex_unlock(&registry_lock);
    return module ? module_handle(module) : NULL;
}

static __attribute__((noinline)) hipModule_t load_slow(struct thread *thread,
                                                       struct module_slot *slot, const void *data) {
    if (!options.cache_on)
        return load_directly(data);
    const struct image image = image_describe(data);
    if (image.damage) {
        report_failure(load_expression, hipErrorInvalidImage, &damaged_image, data, image.damage);
        return NULL;
    }
    if (!image.size)
        return load_directly(data);
    const int device = hip_current_device();
    const uint64_t hash = image_hash(&image);
    const hipModule_t known =
        image.writable ? NULL : find_loaded(thread, slot, data, &image, hash, device);
    const hipModule_t handle = known ? known : load_new(thread, slot, data, image, hash, device);
    if (slot->image == data)
        slot->constant = mapped_for_good(data, image.size);
    return handle;
}

/* A load that the slot serves and counts; NULL if it does not. */
static inline hipModule_t load_from(struct thread *thread, struct module_slot *slot,
                                    const void *image) {
    struct module *module = slot->module;
    if (UNLIKELY(!module || slot->image != image))
        return NULL;
    /* Counted before the epoch is read: an eviction that does not see the count has raised the
     * epoch before (registry_retire). */
    __atomic_fetch_add(&slot->loads, 1, __ATOMIC_SEQ_CST);
    if (LIKELY(slot->epoch == __atomic_load_n(&registry_epoch, __ATOMIC_SEQ_CST) &&
               module->device == hip_current_device() &&
               (slot->constant || image_lies_at(&module->image, image)))) {
        thread->loaded = slot;
        return slot->handle;
    }
    __atomic_fetch_sub(&slot->loads, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static __attribute__((noinline)) hipModule_t load_from_window(struct thread *thread, size_t home,
                                                              const void *image) {
    for (size_t i = 1; i < SLOT_WINDOW; i++) {
        struct module_slot *slot = &thread->modules[(home + i) % MODULE_SLOTS];
        const hipModule_t handle = load_from(thread, slot, image);
        if (handle)
            return handle;
    }
    return load_slow(thread, choose_slot(thread, image), image);
}

hipModule_t impl_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size; /* garbage before LLVM 18 */
    struct thread *thread = thread_get();
    const size_t home = home_of(image);
    const hipModule_t handle = load_from(thread, &thread->modules[home], image);
    return LIKELY(handle) ? handle : load_from_window(thread, home, image);
}

/* A module that this thread did not load, or that is not shared, or that is not ours. */
static __attribute__((noinline)) void unload_slow(hipModule_t handle) {
    struct module *module = options.cache_on ? handle_find(&registry_modules, handle) : NULL;
    bool misused = false, remove = false;
    pthread_mutex_lock(&registry_lock);
    if (module && module->loaded) {
        misused = !registry_held(module);
        remove = !misused && !module->shared;
        if (!misused)
            module->unloads++;
        if (remove)
            registry_remove(module);
    } else {
        misused = module != NULL;
        module = NULL;
    }
    pthread_mutex_unlock(&registry_lock);
    if (misused)
        report_failure(unload_expression, hipErrorNotFound, &unknown_unload, (void *)handle);
    else if (remove)
        REPORT(unload_expression, policy_get()->module_unload(handle), NULL);
    else if (!module)
        REPORT(unload_expression, hip.ModuleUnload(handle), handle ? &unknown_unload : &null_unload,
               (void *)handle);
}

void impl_mgpuModuleUnload(hipModule_t handle) {
    struct thread *thread = thread_get();
    struct module_slot *slot = thread->loaded;
    if (UNLIKELY(!slot || slot->handle != handle)) {
        slot = NULL;
        for (size_t i = 0; i < MODULE_SLOTS && !slot; i++)
            if (thread->modules[i].handle == handle && thread->modules[i].module)
                slot = &thread->modules[i];
    }
    /* What this thread still holds cannot have been evicted, so nothing else is to be checked. */
    if (LIKELY(slot && slot->module && slot->loads > slot->unloads))
        __atomic_store_n(&slot->unloads, slot->unloads + 1, __ATOMIC_RELEASE);
    else
        unload_slow(handle);
}

/* NVIDIA's driver compiles PTX when it loads it, so there a compiled module is kept like any other.
 * Its text is what finds it again: the level it was first compiled at stays. */
hipModule_t impl_mgpuModuleLoadJIT(void *assembly, int level, size_t late_size) {
    if (cuda_present()) {
        cuda.jit_level(level);
        return impl_mgpuModuleLoad(assembly, late_size);
    }
    const struct image image = image_describe(assembly);
    if (image.kind != IMAGE_PTX && image.kind != IMAGE_TEXT && image.kind != IMAGE_BITCODE)
        return impl_mgpuModuleLoad(assembly, late_size);
    report_failure("mgpuModuleLoadJIT(data, optLevel)", hipErrorNotSupported, &no_jit,
                   image_kind_text(&image));
    return NULL;
}
