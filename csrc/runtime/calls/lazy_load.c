#include "calls/lazy_load.h"
#include "base/counters.h"
#include "base/proof.h"
#include "cache/lazy_load.h"
#include "hip/hip.h"
#include "hip/report.h"

static struct advice put_off = {
    .text = "image %p failed to load when the program first looked up kernel '%s': "
            "MGPU_RT_LOAD=lazy had deferred its load"};

/* On the device that was the thread's when the program asked for the load. */
static hipModule_t load_on_its_device(const struct deferred *deferred) {
    const int current = hip_current_device();
    if (current != deferred->device)
        PROOF_STEP(late_load_is_on_its_device,
                   REPORT("hipSetDevice(device)", hip.SetDevice(deferred->device), NULL));
    const hipModule_t module = told_mgpuModuleLoad((void *)(uintptr_t)deferred->image.key, 0);
    if (current != deferred->device)
        REPORT("hipSetDevice(device)", hip.SetDevice(current), NULL);
    return module;
}

static void load_now(struct deferred *deferred, const char *kernel) {
    if (deferred_module(deferred) || deferred_state(deferred) != DEFERRED_HELD)
        return;
    const hipModule_t module = load_on_its_device(deferred);
    if (runtime_counting() && call_now.how == CALL_HIT)
        PROOF_STEP(late_load_may_be_a_hit, stats_hit(CACHE_MODULES)); /* beside the look-up */
    if (!module) {
        if (deferred_end(deferred, DEFERRED_FAILED))
            report_once(&put_off, deferred->image.key, kernel);
    } else if (DOUBT(another_thread_has_loaded_it, !deferred_set_module(deferred, module))) {
        impl_mgpuModuleUnload(module);
    }
}

bool lazy_load(hipModule_t *handle, const char *name) {
    struct deferred *deferred = deferred_find(*handle);
    if (!deferred)
        return true;
    if (DOUBT(waiting_module_was_unloaded, deferred_state(deferred) == DEFERRED_OVER))
        return false;
    load_now(deferred, name ? name : "(null)");
    *handle = deferred_module(deferred);
    return true;
}
