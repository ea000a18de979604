/* mgpuModuleGetFunction. A hit costs about 25 instructions, and a comparison of the name where it
 * is no constant of the program (mapped_for_good): a name alone would mix up two modules, and the
 * address of a name may be reused by a JIT. */
#include "mapped.h"
#include "policy.h"
#include "python.h"
#include "registry.h"

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

static size_t home_of(hipModule_t module, const char *name) {
    return slot_home((uintptr_t)module * 31 + (uintptr_t)name, FUNCTION_SLOT_BITS);
}

/* The slot of a window that is to serve a new function: one out of use, else the first. */
static struct function_slot *choose_slot(struct thread *thread, size_t home, uint64_t epoch) {
    for (size_t i = 0; i < SLOT_WINDOW; i++) {
        struct function_slot *slot = &thread->functions[(home + i) % FUNCTION_SLOTS];
        if (slot->epoch != epoch)
            return slot;
    }
    return &thread->functions[home];
}

static hipFunction_t get_directly(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    stats_bypass(CACHE_FUNCTIONS);
    REPORT(expression, hip.ModuleGetFunction(&function, module, name), &foreign_module,
           name ? name : "(null)", (void *)module);
    return function;
}

static void report_unknown(struct module *module, const char *name, hipError_t error) {
    char names[512] = "";
    pthread_mutex_lock(&registry_lock);
    if (module->loaded)
        image_kernel_names(&module->image, names, sizeof names);
    pthread_mutex_unlock(&registry_lock);
    report_failure(expression, error, &unknown_kernel, (void *)module_handle(module), name,
                   names[0] ? names : "none that could be listed");
}

/* The slot of this thread that holds the module, or NULL. */
static struct module_slot *holder_of(struct thread *thread, const struct module *module) {
    for (size_t i = 0; i < MODULE_SLOTS; i++) {
        struct module_slot *slot = &thread->modules[i];
        if (slot->module == module && slot->loads > slot->unloads)
            return slot;
    }
    return NULL;
}

static struct function *ask_policy(struct module *module, const char *name) {
    void *handle = NULL;
    stats_miss(CACHE_FUNCTIONS);
    const hipError_t error =
        policy_get()->function_get((void *)module_handle(module), name, &handle);
    if (error != hipSuccess) {
        report_unknown(module, name, error);
        return NULL;
    }
    pthread_mutex_lock(&registry_lock);
    struct function *function = registry_set_function(module, name, handle);
    pthread_mutex_unlock(&registry_lock);
    return function;
}

static __attribute__((noinline)) hipFunction_t get_slow(struct thread *thread, size_t home,
                                                        hipModule_t handle, const char *name) {
    if (!handle && options.cache_on) {
        report_failure(expression, hipErrorNotFound, &null_module, name ? name : "(null)");
        return NULL;
    }
    struct module *module = options.cache_on ? handle_find(&registry_modules, handle) : NULL;
    if (!module || !name)
        return get_directly(handle, name);
    pthread_mutex_lock(&registry_lock);
    const bool held = module->loaded && registry_held(module);
    struct function *function = held ? registry_find_function(module, name) : NULL;
    struct module_slot *holder = holder_of(thread, module);
    const uint64_t epoch = __atomic_load_n(&registry_epoch, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&registry_lock);
    if (!held) {
        report_failure(expression, hipErrorNotFound, &unloaded_module, name, (void *)handle);
        return NULL;
    }
    if (!function)
        function = ask_policy(module, name);
    if (!function)
        return NULL;
    const bool constant = mapped_for_good(name, strlen(name) + 1);
    *choose_slot(thread, home, epoch) =
        (struct function_slot){handle, name, function, holder, epoch, constant};
    return function_handle(function);
}

static inline bool serves(const struct function_slot *slot, hipModule_t module, const char *name) {
    return slot->module == module && slot->name == name &&
           slot->epoch == __atomic_load_n(&registry_epoch, __ATOMIC_RELAXED) &&
           (!slot->holder || slot->holder->loads > slot->holder->unloads) &&
           (slot->constant || strcmp(slot->function->name, name) == 0);
}

static __attribute__((noinline)) hipFunction_t get_from_window(struct thread *thread, size_t home,
                                                               hipModule_t module,
                                                               const char *name) {
    for (size_t i = 1; i < SLOT_WINDOW; i++) {
        const struct function_slot *slot = &thread->functions[(home + i) % FUNCTION_SLOTS];
        if (serves(slot, module, name))
            return function_handle(slot->function);
    }
    return get_slow(thread, home, module, name);
}

hipFunction_t impl_mgpuModuleGetFunction(hipModule_t module, const char *name) {
    struct thread *thread = thread_get();
    const size_t home = home_of(module, name);
    const struct function_slot *slot = &thread->functions[home];
    if (LIKELY(serves(slot, module, name)))
        return function_handle(slot->function);
    return get_from_window(thread, home, module, name);
}
