/* mgpuModuleGetFunction finds the functions of cached modules by name. The search begins in the
 * thread's slots.
 *
 * A hit costs about 25 instructions. A hit also compares the name, because a JIT may reuse the
 * name's address for another function's name. The comparison is not needed if the name is a
 * constant of the program (mapped_for_good). */
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "likely.h"
#include "mgpu.h"
#include "modules/image/image.h"
#include "modules/modules.h"
#include "process/mapped.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/slots.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "telemetry/counters.h"

#include <stdlib.h>
#include <string.h>

static const char expression[] = "hipModuleGetFunction(&function, module, name)";

static struct advice null_module = {
    .text = "the program looked up kernel '%s' in a null module. Either the module's load failed "
            "(see the first message), or the program's constructors never ran. With Python's "
            "ExecutionEngine of LLVM 22 and later, call initialize() before invoke()",
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

/* ---- a thread's slots ---- */

static inline hipFunction_t function_handle(const struct function *function) {
    return load_relaxed(&function->handle);
}

/* Returns true if the slot contains HIP's answer for this module and this name. The answer is still
 * valid, because the module's version and state are still those of the slot. */
static inline bool function_slot_serves(const struct slot *slot, hipModule_t handle,
                                        const char *name) {
    return PROOF(function_is_of_the_module, slot->of == handle) && slot->key == name &&
           slot->version_and_state == load_acquire(&slot->module->version_and_state) &&
           (slot->constant ||
            PROOF(function_has_the_name, strcmp(slot->function->name, name) == 0));
}

/* Returns the function from the thread's first slot for this look-up. Returns NULL if that slot
 * does not contain the function. */
static inline hipFunction_t function_lookup_thread(const struct thread *thread, hipModule_t handle,
                                                   const char *name) {
    const struct slot *slot = slot_home(&thread->functions, handle, name);
    return LIKELY(slot->module && function_slot_serves(slot, handle, name))
               ? function_handle(slot->function)
               : NULL;
}

/* A look-up of a function that the thread's first slot does not contain. */
struct lookup {
    struct thread *thread;
    const char *name;
    struct module *module;
    uint32_t version; /* the module's version when the look-up began */
};

static void bind_function_slot(const struct lookup *lookup, struct function *function) {
    const char *name = lookup->name;
    if (thread_is_none(lookup->thread))
        return;
    const hipModule_t handle = module_handle(lookup->module);
    *slot_choose(&lookup->thread->functions, handle, name) = (struct slot){
        .key = name,
        .of = handle,
        .module = lookup->module,
        .function = function,
        .version_and_state = module_version_and_state(lookup->version, MODULE_LIVE),
        .constant = PROOF(name_stays_as_it_is, mapped_for_good(name, strlen(name) + 1))};
}

/* Searches the slots after the first slot in which the thread may have the function. */
static __attribute__((noinline)) hipFunction_t function_probe_thread(const struct thread *thread,
                                                                     hipModule_t handle,
                                                                     const char *name) {
    const struct slot *slot = slot_home(&thread->functions, handle, name);
    for (unsigned i = 1; i < SLOT_WINDOW; i++) {
        slot = slot_after(&thread->functions, slot);
        if (slot->module && function_slot_serves(slot, handle, name))
            return function_handle(slot->function);
    }
    return NULL;
}

/* ---- a module's list, under tables_lock ---- */

static struct function *find_function(const struct module *module, const char *name) {
    struct function *function = module->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    return function;
}

/* Returns HIP's answer to an earlier look-up; NULL if there was no such look-up. */
static hipFunction_t function_lookup_table(const struct lookup *lookup) {
    pthread_mutex_lock(&tables_lock);
    struct function *function = find_function(lookup->module, lookup->name);
    hipFunction_t handle = function ? function->handle : NULL;
    pthread_mutex_unlock(&tables_lock);
    if (handle)
        bind_function_slot(lookup, function);
    return handle;
}

static struct function *function_new(const char *name) {
    const size_t length = strlen(name) + 1;
    struct function *function = malloc(sizeof *function + length);
    if (function)
        memcpy(function->name, name, length);
    return function;
}

/* Returns the table's entry for the name; if there is none, inserts and returns `fresh`. */
static struct function *insert_function(struct module *module, struct function *fresh) {
    struct function *function = find_function(module, fresh->name);
    if (function)
        return function;
    fresh->next = module->functions;
    return module->functions = fresh;
}

/* Caches HIP's answer. The function caches nothing if the module has ended since the look-up began,
 * or if there is no memory. */
static void function_insert(const struct lookup *lookup, hipFunction_t handle) {
    struct function *fresh = function_new(lookup->name), *function = NULL;
    if (!fresh)
        return;
    pthread_mutex_lock(&tables_lock);
    if (module_version(lookup->module) == lookup->version) {
        function = insert_function(lookup->module, fresh);
        store_release(&function->handle, handle); /* threads read the handle without the lock */
    }
    pthread_mutex_unlock(&tables_lock);
    if (function)
        bind_function_slot(lookup, function);
    if (function != fresh)
        free(fresh);
}

/* ---- what no slot answers ---- */

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

/* Asks HIP, and caches the answer if the cache of functions is on. */
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
