/* mgpuModuleGetFunction. A hit costs about 25 instructions, and a comparison of the name where it
 * is no constant of the program (mapped_for_good): a name alone would mix up two modules, and the
 * address of a name may be reused by a JIT. */
#include "base/abi.h"
#include "base/counters.h"
#include "base/handles.h"
#include "base/likely.h"
#include "base/options.h"
#include "base/state.h"
#include "cache/modules.h"
#include "cache/slots.h"
#include "cache/thread.h"
#include "calls/module.h"
#include "hip/device.h"
#include "hip/hip.h"
#include "hip/mapped.h"
#include "hip/refusal.h"
#include "hip/report.h"
#include "image/image.h"

#include <string.h>

static const char expression[] = "hipModuleGetFunction(&function, module, name)";

static struct advice null_module = {
    .text = "kernel '%s' was asked of a null module: loading it failed (see the first message), or "
            "the program's constructors never ran (Python's ExecutionEngine of LLVM 22 and later: "
            "call initialize() before invoke())",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};
static struct advice unknown_kernel = {.text = "module %p has no kernel '%s'; it has %s",
                                       .leads_to = NULL_FUNCTION};
static struct advice unloaded_module = {
    .text = "kernel '%s' was asked of module %p after its mgpuModuleUnload",
    .leads_to = NULL_FUNCTION};
static struct advice foreign_module = {
    .text = "kernel '%s' was asked of %p, which no mgpuModuleLoad returned",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};

/* The slot of a window that is to serve a new function: one out of use, else the first. */
static struct function_slot *choose_function_slot(struct thread *thread, hipModule_t handle,
                                                  const char *name) {
    slots_grow_functions(thread);
    const size_t mask = ((size_t)1 << thread->function_bits) - 1;
    const size_t home = function_home(handle, name, thread->function_bits);
    for (size_t i = 0; i < SLOT_WINDOW; i++) {
        struct function_slot *slot = &thread->functions[(home + i) & mask];
        const bool empty = !slot->module;
        if (empty || slot->generation != module_generation(slot->module)) {
            thread->function_count += empty;
            return slot;
        }
    }
    return &thread->functions[home];
}

static hipFunction_t get_directly(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    stats_bypass(CACHE_FUNCTIONS);
    REPORT(expression, hip.ModuleGetFunction(&function, module, name),
           module ? &foreign_module : &null_module, name ? name : "(null)", (void *)module);
    return function;
}

static void report_unknown(struct module *module, const char *name, hipError_t error) {
    char names[512] = "";
    pthread_mutex_lock(&tables_lock);
    if (module->image.bytes)
        image_kernel_names(&module->image, names, sizeof names);
    pthread_mutex_unlock(&tables_lock);
    report_failure(expression, error, &unknown_kernel, (void *)module_handle(module), name,
                   names[0] ? names : "none that could be listed");
}

/* Asks HIP, and keeps the answer unless the module's entry serves another one by then. */
static struct function *ask_function(struct module *module, uint64_t generation, const char *name) {
    hipFunction_t handle = NULL;
    struct function *function = NULL;
    stats_miss(CACHE_FUNCTIONS);
    const hipError_t error = hip.ModuleGetFunction(&handle, module_handle(module), name);
    if (error != hipSuccess) {
        report_unknown(module, name, error);
        return NULL;
    }
    pthread_mutex_lock(&tables_lock);
    if (module_generation(module) == generation)
        function = registry_set_function(module, name, handle);
    pthread_mutex_unlock(&tables_lock);
    return function;
}

/* `known_as` is what the program calls the module. */
static hipFunction_t get_known(struct thread *thread, hipModule_t known_as, hipModule_t handle,
                               const char *name) {
    struct module *module = options.cache_on ? handle_find(&registry_modules, handle) : NULL;
    const int state = module ? module_state(module) : MODULE_GONE;
    if (state == MODULE_GONE || !name ||
        (state == MODULE_FREE && !device_kept(module_device(module))))
        return get_directly(handle, name);
    if (state == MODULE_FREE) {
        REPORT(expression, refusal_of_module(), &unloaded_module, name, (void *)handle);
        return NULL;
    }
    pthread_mutex_lock(&tables_lock);
    const uint64_t generation = module_generation(module);
    struct function *function = registry_find_function(module, name);
    pthread_mutex_unlock(&tables_lock);
    if (!function)
        function = ask_function(module, generation, name);
    if (!function)
        return NULL;
    *choose_function_slot(thread, known_as, name) = (struct function_slot){
        known_as, name, module, function, generation, mapped_for_good(name, strlen(name) + 1)};
    return function_handle(function);
}

static hipFunction_t get_deferred(struct thread *thread, struct deferred *deferred,
                                  const char *name) {
    const hipModule_t known_as = deferred_handle(deferred);
    if (deferred_state(deferred) == DEFERRED_OVER) {
        REPORT(expression, refusal_of_module(), &unloaded_module, name ? name : "(null)",
               (void *)known_as);
        return NULL;
    }
    const hipModule_t handle = module_load_deferred(deferred, name ? name : "(null)");
    return handle ? get_known(thread, known_as, handle, name) : get_directly(NULL, name);
}

static __attribute__((noinline)) hipFunction_t get_slow(struct thread *thread, hipModule_t handle,
                                                        const char *name) {
    struct deferred *deferred = UNLIKELY(options.load_lazy) ? deferred_find(handle) : NULL;
    return deferred ? get_deferred(thread, deferred, name)
                    : get_known(thread, handle, handle, name);
}

/* The program holds the module, and the module is the one that was asked: so the answer is HIP's
 * still. */
static inline bool serves(const struct function_slot *slot, hipModule_t handle, const char *name) {
    return slot->handle == handle && slot->name == name &&
           slot->generation == module_generation(slot->module) &&
           module_state(slot->module) == MODULE_LIVE &&
           (slot->constant || strcmp(slot->function->name, name) == 0);
}

static __attribute__((noinline)) hipFunction_t get_from_window(struct thread *thread, size_t home,
                                                               hipModule_t handle,
                                                               const char *name) {
    const size_t mask = ((size_t)1 << thread->function_bits) - 1;
    for (size_t i = 1; i < SLOT_WINDOW; i++) {
        const struct function_slot *slot = &thread->functions[(home + i) & mask];
        if (slot->module && serves(slot, handle, name))
            return function_handle(slot->function);
    }
    return get_slow(thread, handle, name);
}

hipFunction_t impl_mgpuModuleGetFunction(hipModule_t module, const char *name) {
    struct thread *thread = thread_get();
    const size_t home = function_home(module, name, thread->function_bits);
    const struct function_slot *slot = &thread->functions[home];
    if (LIKELY(slot->module && serves(slot, module, name)))
        return function_handle(slot->function);
    return get_from_window(thread, home, module, name);
}
