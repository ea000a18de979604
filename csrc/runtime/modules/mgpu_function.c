/* mgpuModuleGetFunction. */
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "likely.h"
#include "mgpu.h"
#include "modules/functions.h"
#include "modules/image/image.h"
#include "modules/modules.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/thread.h"
#include "telemetry/counters.h"

static const char expression[] = "hipModuleGetFunction(&function, module, name)";

static struct advice null_module = {
    .text = "the program looked up kernel '%s' in a null module: its load failed (see the first "
            "message), or "
            "the program's constructors never ran (Python's ExecutionEngine of LLVM 22 and later: "
            "call initialize() before invoke())",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};
static struct advice unknown_kernel = {.text = "module %p has no kernel '%s'; it has %s",
                                       .leads_to = NULL_FUNCTION};
static struct advice unloaded_module = {
    .text = "the program looked up kernel '%s' in module %p after mgpuModuleUnload",
    .leads_to = NULL_FUNCTION};
static struct advice foreign_module = {
    .text = "the program looked up kernel '%s' in %p, which no mgpuModuleLoad returned",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};

static hipFunction_t get_directly(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    call_tell(CALL_BYPASS);
    REPORT(expression, hip.ModuleGetFunction(&function, module, name),
           PROOF(module_is_not_null, module) ? &foreign_module : &null_module,
           name ? name : "(null)", (void *)module);
    return function;
}

static void report_unloaded(hipModule_t module, const char *name) {
    REPORT(expression, refusal_of_module(), &unloaded_module, name ? name : "(null)",
           (void *)module);
}

static void report_unknown(struct module *module, const char *name, hipError_t error) {
    char names[512] = "";
    pthread_mutex_lock(&tables_lock);
    if (module_is_known(module))
        image_kernel_names(&module->image, names, sizeof names);
    pthread_mutex_unlock(&tables_lock);
    report_failure(expression, error, &unknown_kernel, (void *)module_handle(module), name,
                   names[0] ? names : "none that could be listed");
}

/* Asks HIP, and keeps the answer unless functions are not cached. */
static hipFunction_t ask_function(const struct lookup *lookup) {
    hipFunction_t function = NULL;
    call_tell(CALL_BYPASS);
    const hipError_t error =
        hip.ModuleGetFunction(&function, module_handle(lookup->module), lookup->name);
    if (error != hipSuccess) {
        report_unknown(lookup->module, lookup->name, error);
    } else if (cache_is_on(CACHE_FUNCTIONS)) {
        stats_miss(CACHE_FUNCTIONS);
        function_insert(lookup, function);
    }
    return function;
}

static hipFunction_t get_known(struct thread *thread, hipModule_t handle, const char *name) {
    struct module *module = caches_on() ? handle_find(&module_map, handle) : NULL;
    const int state = module ? module_state_asked(module) : MODULE_GONE;
    if (name && PROOF(refused_module_was_unloaded, state == MODULE_IDLE)) {
        report_unloaded(handle, name);
        return NULL;
    }
    if (state == MODULE_GONE || !name)
        return get_directly(handle, name);
    const struct lookup lookup = {thread, name, module, module_version(module)};
    const hipFunction_t known =
        cache_is_on(CACHE_FUNCTIONS) ? function_lookup_table(&lookup) : NULL;
    if (!known)
        return ask_function(&lookup);
    call_tell(CALL_HIT);
    return known;
}

static __attribute__((noinline)) hipFunction_t get_slow(struct thread *thread, hipModule_t handle,
                                                        const char *name) {
    const hipFunction_t near = function_probe_thread(thread, handle, name);
    if (!near)
        return get_known(thread, handle, name);
    call_tell(CALL_HIT);
    return near;
}

static inline hipFunction_t get_function(hipModule_t module, const char *name, bool told) {
    struct thread *thread = thread_get();
    const hipFunction_t own = function_lookup_thread(thread, module, name);
    if (UNLIKELY(!own))
        return get_slow(thread, module, name);
    if (told)
        call_tell(CALL_HIT);
    return own;
}

hipFunction_t impl_mgpuModuleGetFunction(hipModule_t module, const char *name) {
    return get_function(module, name, false);
}

hipFunction_t told_mgpuModuleGetFunction(hipModule_t module, const char *name) {
    return get_function(module, name, true);
}
