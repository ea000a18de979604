/* mgpuModuleLoad, mgpuModuleUnload, mgpuModuleLoadJIT. */
#include "base/counters.h"
#include "base/likely.h"
#include "base/observe.h"
#include "base/options.h"
#include "base/proof.h"
#include "base/state.h"
#include "cache/caches.h"
#include "cache/events.h"
#include "cache/lazy_sync.h"
#include "cache/modules.h"
#include "cache/modules_limit.h"
#include "cache/thread.h"
#include "cache/watch.h"
#include "calls/image_advice.h"
#include "hip/cuda.h"
#include "hip/exclusive.h"
#include "hip/hip.h"
#include "hip/mapped.h"
#include "hip/refusal.h"
#include "hip/report.h"
#include "image/image.h"

#include <stdlib.h>

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

static hipModule_t load_directly(const void *data) {
    hipModule_t module = NULL;
    call_tell(CALL_BYPASS);
    lazy_end();
    const hipError_t error = RETRY(hip.ModuleLoadData(&module, data));
    if (error != hipSuccess) {
        const struct image image = image_describe(data);
        advise_image(load_expression, error, &image);
        return NULL;
    }
    PROOF_STEP(handle_is_another_modules_now, module_invalidate(module));
    call_now.loaded.driver_loads++;
    module_tell_image(data);
    return module;
}

static hipModule_t load_new(struct load *load) {
    PROOF_STEP(new_library_may_ask_for_times, event_look_for_timer());
    if (!module_copy_image(load))
        return load_directly(load->data);
    hipModule_t handle = NULL;
    lazy_note_image(&load->image);
    const hipError_t error = RETRY(hip.ModuleLoadData(&handle, load->for_hip));
    register_exit();
    if (error != hipSuccess) {
        advise_image(load_expression, error, &load->image);
        free(load->copy);
        return NULL;
    }
    stats_miss(CACHE_MODULES);
    call_now.loaded.driver_loads++;
    module_tell(&load->image, load->hash);
    if (module_enter(load, handle))
        evict_modules(load->hash);
    return handle;
}

static hipModule_t hit(const struct module *module) {
    call_tell(CALL_HIT);
    PROOF_STEP(hit_tells_its_image, module_tell(&module->image, module->hash));
    return module_handle(module);
}

static __attribute__((noinline)) hipModule_t load_slow(struct thread *thread, const void *data) {
    const struct module *near = module_take_near(thread, data);
    if (near)
        return hit(near);
    if (!cache_is_on(CACHE_MODULES))
        return load_directly(data);
    struct load load = {.thread = thread, .data = data, .image = image_describe(data)};
    if (load.image.damage) {
        REPORT(load_expression, refusal_of_image(data), &damaged_image, data, load.image.damage);
        return NULL;
    }
    if (!load.image.size)
        return load_directly(data);
    load.image.writable |= DOUBT(others_may_set_constants, load.image.settable && !exclusive_hip());
    load.device = hip_current_device();
    load.constant = PROOF(image_stays_as_it_is, mapped_for_good(data, load.image.size));
    load.hash = image_hash(&load.image);
    const struct module *known = load.image.writable ? NULL : module_take_known(&load);
    return known ? hit(known) : load_new(&load);
}

static inline hipModule_t load_image(void *image, bool told) {
    struct thread *thread = thread_get();
    PROOF_STEP(reset_before_module_reuse, (void)device_kept(hip_current_device()));
    const struct module *own = module_take_own(thread, image);
    if (UNLIKELY(!own))
        return load_slow(thread, image);
    return told ? hit(own) : module_handle(own);
}

hipModule_t impl_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size; /* garbage before LLVM 18 */
    return load_image(image, false);
}

hipModule_t told_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size;
    return load_image(image, true);
}

/* A module that is not shared goes back to HIP at once, as with stock: the next load is to see
 * fresh globals. */
static void unload_private(struct module *module) {
    const hipModule_t handle = module_handle(module);
    const size_t bytes = module_cost(module);
    const int device = module->device;
    unsigned char *copy = NULL;
    if (!module_leave_private(module, &copy))
        return;
    observe(OBSERVED_MODULE_UNLOADED, handle, bytes, device);
    REPORT(unload_expression, hip.ModuleUnload(handle), &unknown_unload, (void *)handle);
    free(copy);
}

static __attribute__((noinline)) void unload_slow(hipModule_t handle) {
    struct module *module = handle ? handle_find(&module_map, handle) : NULL;
    const int state = module ? module_state_asked(module) : MODULE_GONE;
    if (runtime_leaves(module))
        return;
    if (state == MODULE_LIVE && module->shared)
        module_put(module);
    else if (state == MODULE_LIVE)
        unload_private(module);
    else if (state == MODULE_FREE)
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
hipModule_t told_mgpuModuleLoadJIT(void *assembly, int level, size_t late_size) {
    if (cuda_present()) {
        cuda.jit_level(level);
        return told_mgpuModuleLoad(assembly, late_size);
    }
    const struct image image = image_describe(assembly);
    if (image.kind != IMAGE_PTX && image.kind != IMAGE_TEXT && image.kind != IMAGE_BITCODE)
        return told_mgpuModuleLoad(assembly, late_size);
    call_tell(CALL_REFUSED);
    report_failure("mgpuModuleLoadJIT(data, optLevel)", hipErrorNotSupported, &no_jit,
                   image_kind_text(&image));
    return NULL;
}

hipModule_t impl_mgpuModuleLoadJIT(void *assembly, int level, size_t late_size) {
    return told_mgpuModuleLoadJIT(assembly, level, late_size);
}
