/* mgpuModuleLoad, mgpuModuleUnload, mgpuModuleLoadJIT. A load gets a module from the thread's
 * slots, from the table of images, or from HIP. */
#include "driver/refusal.h"
#include "modules/image/metadata.h"
#include "modules/modules.h"
#include "process/mapped.h"
#include "streams/lazy_sync.h"
#include "telemetry/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char load_expression[] = "hipModuleLoadData(&module, data)";
static const char unload_expression[] = "hipModuleUnload(module)";

static struct advice unknown_unload = {
    .text = "mgpuModuleUnload was given %p: no mgpuModuleLoad returned this module, or the program "
            "unloaded it before"};
static struct advice no_jit = {
    .text = "mgpuModuleLoadJIT was given assembly or LLVM bitcode: HIP cannot compile it when the "
            "program runs. Lower with gpu-module-to-binary{format=bin}",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice null_unload = {
    .text = "mgpuModuleUnload was given a null module, which no mgpuModuleLoad returned",
    .follows = NULL_MODULE};

/* ---- loading ---- */

/* HIP reads the image as long as the module lives, but a JIT may free its image earlier. So the
 * module owns a copy of the image, aligned to pages as a loader would align it. An image that never
 * changes needs no copy. Returns false if there is no memory. */
static bool copy_image(struct load *load) {
    struct image *image = &load->image;
    if (PROOF(image_is_a_constant, load->constant))
        return true;
    unsigned char *copy = load->copy = aligned_alloc(MODULE_PAGE, module_pages(image->size));
    if (!copy)
        return false;
    memcpy(copy, image->bytes, image->size);
    PROOF_STEP(module_has_its_own_bytes, image->bytes = copy);
    return true;
}

static struct load *hit(struct load *load, const struct module *module) {
    load->how = CALL_HIT;
    load->handle = module_handle(module);
    load->image = module->image;
    return load;
}

/* Calls HIP to load an image from these bytes. */
static hipError_t load_by_hip(struct load *load, const void *bytes) {
    const hipError_t error = hip.ModuleLoadData(&load->handle, bytes);
    PROOF_STEP(load_ends_the_answers_about_addresses, ranges_change());
    return error;
}

/* Calls HIP to load an image that the library cannot read or copy. The library does not enter the
 * module into its tables. */
static struct load *load_uncached(struct load *load) {
    load->how = CALL_BYPASS;
    lazy_end();
    load->error = load_by_hip(load, load->data);
    if (load->error == hipSuccess)
        PROOF_STEP(handle_is_another_modules_now, module_invalidate(load->handle));
    return load;
}

/* Loads a module for the program. The result contains the module, or the reason why there is no
 * module. Reports nothing. */
static struct load module_load(struct thread *thread, const void *data) {
    struct load load = {.thread = thread, .data = data};
    struct module *kept;

    load.device = hip_current_device();
    /* HIP decides about images whose size the library does not find. */
    if (cache_is_on(CACHE_MODULES) && device_has_caches(load.device)) {
        load.constant = module_image_is_constant(data, &load.image);
        if (!load.constant)
            load.image = image_describe(data);
    }
    if (!load.image.size)
        return *load_uncached(&load);

    /* The table may have an idle module of these bytes. */
    load.constant =
        load.constant || PROOF(image_stays_as_it_is, mapped_for_good(data, load.image.size));
    load.shared = !load.image.writable;
    kept = load.shared ? module_lookup_table(&load) : NULL;
    if (kept)
        return *hit(&load, kept);

    /* If no module serves the load, HIP loads the image, and the module enters the table. */
    if (!copy_image(&load))
        return *load_uncached(&load);
    if (options.sync_lazy && metadata_may_print(&load.image))
        lazy_note_printing();
    load.how = CALL_MISS;
    load.error = load_by_hip(&load, load.image.bytes);
    register_exit();
    if (load.error != hipSuccess) {
        free(load.copy);
        load.image.bytes = data;
    } else if (module_insert(&load)) {
        module_enforce_limit();
    }
    return load;
}

/* ---- mgpuModuleLoad ---- */

/* Reports the outcome of a load, and returns the module. If the load failed, reports the reason and
 * returns NULL. */
static hipModule_t report_load(struct load *load) {
    if (load->how == CALL_MISS)
        stats_miss(CACHE_MODULES);
    else
        call_tell(load->how);
    if (load->error != hipSuccess) {
        if (!load->image.bytes)
            load->image = image_describe(load->data);
        advise_image(load_expression, load->error, &load->image, load->device);
    }
    return load->handle;
}

/* Returns whether HIP may lack memory for a module. If there is no memory for a module, HIP 5.2.3
 * and 5.7.1 return error 303, and HIP 6.4.3 and 7.2.4 return error 209. HIP returns these errors
 * also for an image that it cannot load, such as an image for another GPU. */
static bool may_lack_memory(const struct load *load) {
    const hipError_t error = load->error;
    return error == hipErrorOutOfMemory ||
           ((DOUBT(hip_5_found_no_memory_for_a_module, error == hipErrorSharedObjectInitFailed) ||
             DOUBT(hip_6_found_no_memory_for_a_module, error == hipErrorNoBinaryForGpu)) &&
            PROOF(image_suits_the_device, image_suits_device(&load->image, load->device)));
}

/* If HIP lacked memory for the module, trims the caches and repeats the load. */
static __attribute__((noinline)) hipModule_t load_slow(struct thread *thread, const void *data) {
    struct load load = module_load(thread, data);
    if (UNLIKELY(load.error != hipSuccess) &&
        DOUBT(load_may_succeed_with_room,
              may_lack_memory(&load) && caches_make_room(hipErrorOutOfMemory)))
        load = module_load(thread, data);
    return report_load(&load);
}

inline __attribute__((always_inline)) hipModule_t impl_mgpuModuleLoad(void *image,
                                                                      size_t late_size) {
    struct thread *thread = thread_get();
    const int device = hip_current_device();
    (void)late_size; /* LLVM 17 and older do not pass `late_size`, so its value is garbage */
    PROOF_STEP(reset_before_module_reuse, (void)device_kept(device));
    const struct module *own = module_lookup_thread(thread, image, device);
    return LIKELY(own) ? module_handle(own) : load_slow(thread, image);
}

/* ---- mgpuModuleUnload ---- */

/* As with stock, HIP unloads an unshared module at once, because the next load of the image must
 * get fresh globals. Only a module that a graph uses stays loaded, until module_let_go. */
static hipError_t unload_unshared(struct module *module) {
    struct removed_module removed;
    const hipModule_t handle = module_handle(module);
    pthread_mutex_lock(&tables_lock);
    const bool leaves = PROOF(no_graph_launches_its_kernels, module->graphs == 0);
    const bool known = leaves && module_remove(module, &removed);
    if (!leaves)
        module_release(module);
    pthread_mutex_unlock(&tables_lock);
    if (!leaves)
        return hipSuccess;
    return known ? module_unload_removed(&removed) : hip.ModuleUnload(handle);
}

/* Unloads a module as mgpuModuleUnload does. Returns HIP's answer, and reports nothing. */
static hipError_t module_unload(hipModule_t handle) {
    struct module *module = handle ? handle_find(&module_map, handle) : NULL;
    const int state = module ? module_state_asked(module) : MODULE_GONE;
    if (runtime_leaves(module))
        return hipSuccess;
    if (state == MODULE_IDLE) /* the program has unloaded the module before */
        return refusal_of_module();
    if (state == MODULE_GONE)
        return hip.ModuleUnload(handle);
    if (!module->shared)
        return unload_unshared(module);
    module_release(module);
    return hipSuccess;
}

static __attribute__((noinline)) void unload_slow(hipModule_t handle) {
    REPORT(unload_expression, module_unload(handle), handle ? &unknown_unload : &null_unload,
           (void *)handle);
}

void impl_mgpuModuleUnload(hipModule_t handle) {
    struct module *module = thread_get()->loaded;
    if (LIKELY(module && module_handle(module) == handle && module->shared &&
               module_state(module) == MODULE_LIVE))
        module_release(module);
    else
        unload_slow(handle);
}

/* NVIDIA's driver compiles PTX during a load. So with NVIDIA's driver, the library caches a
 * compiled module like other modules. A later load of the same PTX gets the cached module, even if
 * the later load requests another optimisation level. */
hipModule_t impl_mgpuModuleLoadJIT(void *assembly, int level, size_t late_size) {
    if (cuda_present()) {
        cuda.jit_level(level);
        return impl_mgpuModuleLoad(assembly, late_size);
    }
    const enum image_kind kind = image_describe(assembly).kind;
    if (kind != IMAGE_PTX && kind != IMAGE_SOURCE)
        return impl_mgpuModuleLoad(assembly, late_size);
    call_tell(CALL_REFUSED);
    report_failure("mgpuModuleLoadJIT(data, optLevel)", hipErrorNotSupported, &no_jit);
    return NULL;
}
