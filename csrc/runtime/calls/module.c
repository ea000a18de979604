/* mgpuModuleLoad, mgpuModuleUnload, mgpuModuleLoadJIT.
 *
 * A module that the program has unloaded stays loaded, as the cache's alone, until a load of the
 * same bytes takes it: a hit costs about 30 instructions, one of them locked. One that the program
 * holds serves nobody else. The address only finds the candidate: a JIT reuses addresses, so the
 * bytes decide. They are compared (0.05 to 0.1 µs for 5 KB, 0.2 with cold caches) unless the
 * loader's tables proved, when the slot was filled, that they cannot have changed since: those of a
 * lowered program are its constants. */
#include "calls/module.h"
#include "base/abi.h"
#include "base/atomics.h"
#include "base/counters.h"
#include "base/handles.h"
#include "base/likely.h"
#include "base/observe.h"
#include "base/options.h"
#include "base/state.h"
#include "cache/lazy_sync.h"
#include "cache/modules.h"
#include "cache/modules_limit.h"
#include "cache/slots.h"
#include "cache/thread.h"
#include "calls/advice.h"
#include "hip/cuda.h"
#include "hip/device.h"
#include "hip/hip.h"
#include "hip/mapped.h"
#include "hip/refusal.h"
#include "hip/report.h"
#include "image/image.h"
#include "image/metadata.h"

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
static struct advice put_off = {
    .text = "that image, at %p, was loaded only now that its kernel '%s' was asked for "
            "(MGPU_RT_LOAD=lazy)"};
static struct advice null_unload = {
    .text = "mgpuModuleUnload was given a null module, which no mgpuModuleLoad returned",
    .follows = NULL_MODULE};

/* The slot of a window that is to serve an image: its own, else one that serves none, else the
 * first. The table grows before it fills up, so that the last case stays rare. */
static struct module_slot *choose_module_slot(struct thread *thread, const void *image) {
    slots_grow_modules(thread);
    const size_t mask = ((size_t)1 << thread->module_bits) - 1;
    const size_t home = slot_home((uintptr_t)image, thread->module_bits);
    struct module_slot *chosen = &thread->modules[home];
    for (size_t i = 0; i < SLOT_WINDOW; i++) {
        struct module_slot *slot = &thread->modules[(home + i) & mask];
        if (slot->image == image)
            return slot;
        if (chosen->module && !slot->module)
            chosen = slot;
    }
    thread->module_count += !chosen->module;
    return chosen;
}

static hipModule_t load_directly(const void *data) {
    hipModule_t module = NULL;
    stats_bypass(CACHE_MODULES);
    lazy_end();
    const hipError_t error = RETRY(hip.ModuleLoadData(&module, data));
    if (error != hipSuccess) {
        const struct image image = image_describe(data);
        advise_image(load_expression, error, &image);
        return NULL;
    }
    return module;
}

/* A load that no slot of the thread serves: what is known of it on its way. */
struct load {
    struct thread *thread;
    const void *data; /* the program's image */
    struct image image;
    uint64_t hash;
    int device;
    bool constant;       /* the image can neither change nor go away */
    unsigned char *copy; /* of it, or NULL */
    const void *for_hip;
};

/* Makes a slot of the thread serve a module that was just taken or loaded. */
static void bind_slot(const struct load *load, struct module *module) {
    *choose_module_slot(load->thread, load->data) =
        (struct module_slot){load->data, module, module->generation, load->constant};
}

/* HIP reads the image as long as the module lives, which is longer than a JIT keeps its own, so the
 * module has a copy, page-aligned, as the loader of a file would have it. What is a constant for
 * good needs none. Where HIP needs another image than the program's, that follows in the same
 * block. False without memory. */
static bool copy_image(struct load *load) {
    struct image *image = &load->image;
    const size_t page = 4096, room = (image->size + page - 1) / page * page;
    const bool changed = metadata_needs_copy(image, hip_version);
    load->for_hip = image->bytes;
    if (load->constant && !changed)
        return true;
    unsigned char *copy = load->copy = aligned_alloc(page, changed ? 2 * room : room);
    if (!copy)
        return false;
    memcpy(copy, image->bytes, image->size);
    load->for_hip = image->bytes = copy;
    if (changed) {
        memcpy(copy + room, copy, image->size);
        metadata_drop_queue(copy + room, image->size);
        load->for_hip = copy + room;
    }
    return true;
}

static hipModule_t enter_module(struct load *load, hipModule_t handle) {
    const bool shared = !load->image.writable;
    struct module *module = registry_add(handle, &load->image, load->hash, load->device, shared);
    if (!module)
        return handle; /* without memory for the entry: as stock's, and the copy stays */
    module->copy = load->copy;
    device_watch(load->device);
    observe(OBSERVED_MODULE_LOADED, handle, load->image.size, load->device);
    if (shared)
        bind_slot(load, module);
    load->thread->loaded = module;
    evict_modules(load->hash);
    return handle;
}

static hipModule_t load_new(struct load *load) {
    stats_miss(CACHE_MODULES);
    if (!copy_image(load))
        return load_directly(load->data);
    hipModule_t handle = NULL;
    lazy_note_image(&load->image);
    const hipError_t error = RETRY(hip.ModuleLoadData(&handle, load->for_hip));
    hooks.register_exit();
    if (error != hipSuccess) {
        advise_image(load_expression, error, &load->image);
        free(load->copy);
        return NULL;
    }
    return enter_module(load, handle);
}

/* The image has moved, or a module of another thread's serves. */
static hipModule_t take_known(const struct load *load) {
    pthread_mutex_lock(&tables_lock);
    struct module *module = registry_take_image(&load->image, load->hash, load->device);
    pthread_mutex_unlock(&tables_lock);
    if (!module || !device_kept(load->device))
        return NULL;
    module_note_use(module);
    bind_slot(load, module);
    load->thread->loaded = module;
    return module_handle(module);
}

/* A load can wait where nothing can change the image or take it away. PTX cannot, as the next call
 * says at what level it is compiled. */
static hipModule_t put_off_load(const struct load *load) {
    const enum image_kind kind = load->image.kind;
    if (kind == IMAGE_PTX || kind == IMAGE_TEXT || kind == IMAGE_BITCODE || !load->constant)
        return NULL;
    const struct deferred *deferred = deferred_new(load->data, load->device);
    if (!deferred)
        return NULL;
    stats_bypass(CACHE_MODULES);
    return deferred_handle(deferred);
}

static __attribute__((noinline)) hipModule_t load_slow(struct thread *thread, const void *data) {
    if (!options.cache_on)
        return load_directly(data);
    struct load load = {.thread = thread, .data = data, .image = image_describe(data)};
    if (load.image.damage) {
        REPORT(load_expression, refusal_of_image(data), &damaged_image, data, load.image.damage);
        return NULL;
    }
    if (!load.image.size)
        return load_directly(data);
    load.device = hip_current_device();
    load.constant = mapped_for_good(data, load.image.size);
    const hipModule_t deferred = UNLIKELY(options.load_lazy) ? put_off_load(&load) : NULL;
    if (deferred)
        return deferred;
    load.hash = image_hash(&load.image);
    const hipModule_t known = load.image.writable ? NULL : take_known(&load);
    return known ? known : load_new(&load);
}

/* A load that the slot's module serves; NULL if it does not. The module is this thread's own before
 * anything of it is looked at, so that nobody can evict it or give its entry to another one. */
static inline hipModule_t load_from(struct thread *thread, const struct module_slot *slot,
                                    const void *image) {
    struct module *module = slot->module;
    if (UNLIKELY(!module || slot->image != image || !module_take(module)))
        return NULL;
    if (LIKELY(slot->generation == module->generation && module->device == hip_current_device() &&
               (slot->constant || image_lies_at(&module->image, image)))) {
        if (UNLIKELY(!device_kept(module->device)))
            return NULL;
        module_note_use(module);
        thread->loaded = module;
        return module_handle(module);
    }
    module_put(module);
    return NULL;
}

static __attribute__((noinline)) hipModule_t load_from_window(struct thread *thread, size_t home,
                                                              const void *image) {
    const size_t mask = ((size_t)1 << thread->module_bits) - 1;
    for (size_t i = 1; i < SLOT_WINDOW; i++) {
        const hipModule_t handle = load_from(thread, &thread->modules[(home + i) & mask], image);
        if (handle)
            return handle;
    }
    return load_slow(thread, image);
}

hipModule_t impl_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size; /* garbage before LLVM 18 */
    struct thread *thread = thread_get();
    const size_t home = slot_home((uintptr_t)image, thread->module_bits);
    const hipModule_t handle = load_from(thread, &thread->modules[home], image);
    return LIKELY(handle) ? handle : load_from_window(thread, home, image);
}

/* On the device that was the thread's when the program asked for the load. */
static hipModule_t load_on_its_device(const struct deferred *deferred) {
    const int current = hip_current_device();
    if (current != deferred->device)
        REPORT("hipSetDevice(device)", hip.SetDevice(deferred->device), NULL);
    const hipModule_t module = impl_mgpuModuleLoad((void *)(uintptr_t)deferred->image.key, 0);
    if (current != deferred->device)
        REPORT("hipSetDevice(device)", hip.SetDevice(current), NULL);
    return module;
}

hipModule_t module_load_deferred(struct deferred *deferred, const char *kernel) {
    if (deferred_module(deferred) || deferred_state(deferred) != DEFERRED_HELD)
        return deferred_module(deferred);
    const hipModule_t module = load_on_its_device(deferred);
    stats_bypass_ends(CACHE_MODULES);
    if (!module) {
        if (deferred_end(deferred, DEFERRED_FAILED))
            report_once(&put_off, deferred->image.key, kernel);
    } else if (!deferred_set_module(deferred, module)) {
        impl_mgpuModuleUnload(module);
    }
    return deferred_module(deferred);
}

/* A module with writable globals goes back to HIP at once, as with stock: the next load is to see
 * fresh ones. */
static void unload_private(struct module *module) {
    const hipModule_t handle = module_handle(module);
    const int device = module->device;
    pthread_mutex_lock(&tables_lock);
    const bool mine = module_state(module) == MODULE_LIVE; /* else another thread was faster */
    const size_t bytes = module->image.size;
    if (mine)
        registry_forget(module);
    pthread_mutex_unlock(&tables_lock);
    if (mine)
        observe(OBSERVED_MODULE_UNLOADED, handle, bytes, device);
    REPORT(unload_expression, hip.ModuleUnload(handle), &unknown_unload, (void *)handle);
}

/* HIP need not know of a module that was never asked for a kernel. */
static void unload_deferred(struct deferred *deferred) {
    const hipModule_t handle = deferred_handle(deferred), module = deferred_module(deferred);
    if (runtime_leaves(deferred))
        return;
    if (deferred_state(deferred) == DEFERRED_FAILED)
        REPORT(unload_expression, hip.ModuleUnload(NULL), &null_unload);
    else if (!deferred_end(deferred, DEFERRED_OVER))
        REPORT(unload_expression, refusal_of_module(), &unknown_unload, (void *)handle);
    else if (module)
        impl_mgpuModuleUnload(module);
}

static __attribute__((noinline)) void unload_slow(hipModule_t handle) {
    struct deferred *deferred = UNLIKELY(options.load_lazy) ? deferred_find(handle) : NULL;
    if (deferred) {
        unload_deferred(deferred);
        return;
    }
    struct module *module = handle ? handle_find(&registry_modules, handle) : NULL;
    const int state = module ? module_state(module) : MODULE_GONE;
    if (runtime_leaves(module))
        return;
    if (state == MODULE_LIVE && module->shared)
        module_put(module);
    else if (state == MODULE_LIVE)
        unload_private(module);
    else if (state == MODULE_FREE && device_kept(module_device(module)))
        REPORT(unload_expression, refusal_of_module(), &unknown_unload, (void *)handle);
    else
        REPORT(unload_expression, hip.ModuleUnload(handle), handle ? &unknown_unload : &null_unload,
               (void *)handle);
}

void impl_mgpuModuleUnload(hipModule_t handle) {
    struct module *module = thread_get()->loaded;
    if (LIKELY(module && module_handle(module) == handle && module->shared &&
               module_state(module) == MODULE_LIVE))
        module_put(module);
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
