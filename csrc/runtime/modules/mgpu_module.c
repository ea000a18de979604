/* mgpuModuleLoad, mgpuModuleUnload, mgpuModuleLoadJIT. */
#include "modules/mgpu_module.h"
#include "driver/cuda.h"
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "likely.h"
#include "modules/image/image.h"
#include "modules/image_advice.h"
#include "modules/module_name.h"
#include "modules/modules.h"
#include "modules/modules_load.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"
#include "telemetry/keys.h"
#include "telemetry/observe.h"

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

/* ---- what a call has loaded ---- */

static enum unshared why_unshared(const struct image *image) {
    if (!cache_is_on(CACHE_MODULES))
        return UNSHARED_CACHE_OFF;
    if (!image->writable)
        return module_may_share(image) ? UNSHARED_NOT : UNSHARED_SETTABLE;
    return image->opaque ? UNSHARED_OPAQUE : UNSHARED_WRITABLE;
}

/* Fills an image's row once; the bytes come last. The name is read before the lock is taken:
 * reading takes the loader's lock, and a library's constructor may load a module under that. */
static void fill_row(struct module_counter *row, const struct image *image) {
    char name[MODULE_NAME];
    image_module_name(call_now.image, name, sizeof name);
    pthread_mutex_lock(&tables_lock);
    if (!row->bytes) {
        row->why = why_unshared(image);
        memcpy(row->name, name, sizeof name);
        store_release(&row->bytes, image->size);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Tells the calling thread's call which image it has loaded, by its row in the counters. An image
 * that gets a row there is named by its gpu.module. */
static void tell(const struct image *image) {
    bool fresh;
    if (!runtime_counting())
        return;
    const size_t row = key_enter(counts.module_keys, MODULES, image->hash, &fresh);
    if (row < MODULES && !load_acquire(&counts.modules[row].bytes))
        fill_row(&counts.modules[row], image);
    call_now.loaded.image = row < MODULES ? row + 1 : 0;
}

void module_tell_image(const void *data) {
    if (!runtime_counting())
        return;
    const struct image image = image_describe(data);
    if (image.hash)
        tell(&image);
}

/* ---- mgpuModuleLoad ---- */

/* Returns the module, or reports why there is none. */
static hipModule_t report_load(struct load *load) {
    if (load->how == CALL_MISS)
        stats_miss(CACHE_MODULES);
    else
        call_tell(load->how);
    if (load->how == CALL_REFUSED) {
        REPORT(load_expression, refusal_of_image(load->data), &damaged_image, load->data,
               load->image.damage);
    } else if (load->error != hipSuccess) {
        if (!load->image.bytes)
            load->image = image_describe(load->data);
        advise_image(load_expression, load->error, &load->image);
    } else {
        call_now.loaded.driver_loads += load->how != CALL_HIT;
        if (load->image.hash)
            tell(&load->image);
        else if (!load->image.bytes)
            module_tell_image(load->data);
    }
    return load->handle;
}

static __attribute__((noinline)) hipModule_t load_slow(struct thread *thread, const void *data) {
    struct load load = module_load(thread, data);
    return report_load(&load);
}

static __attribute__((noinline)) void tell_hit(const struct module *module) {
    call_tell(CALL_HIT);
    PROOF_STEP(hit_tells_its_image, tell(&module->image));
}

static inline hipModule_t load_image(void *image, bool told) {
    struct thread *thread = thread_get();
    PROOF_STEP(reset_before_module_reuse, (void)device_kept(hip_current_device()));
    const struct module *own = module_lookup_thread(thread, image);
    if (UNLIKELY(!own))
        return load_slow(thread, image);
    if (told)
        tell_hit(own);
    return module_handle(own);
}

hipModule_t impl_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size; /* garbage before LLVM 18 */
    return load_image(image, false);
}

hipModule_t told_mgpuModuleLoad(void *image, size_t late_size) {
    (void)late_size;
    return load_image(image, true);
}

static __attribute__((noinline)) void unload_slow(hipModule_t handle) {
    const struct module_unloaded unloaded = module_unload(handle);
    REPORT(unload_expression,
           unloaded.verdict == UNLOAD_TWICE ? refusal_of_module() : unloaded.error,
           handle ? &unknown_unload : &null_unload, (void *)handle);
}

void impl_mgpuModuleUnload(hipModule_t handle) {
    struct module *module = thread_get()->loaded;
    if (LIKELY(module && module_handle(module) == handle && module->shared &&
               module_state(module) == MODULE_LIVE))
        module_release(module);
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
