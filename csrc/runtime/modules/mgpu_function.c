/* mgpuModuleGetFunction finds the functions of cached modules by name. The search begins in a table
 * by the module's handle and the name's address, which all threads read without a lock.
 *
 * A hit costs about 25 instructions. A hit also compares the name, because a JIT may reuse the
 * name's address for another function's name. The comparison is not needed if the name is a
 * constant of the program (mapped_for_good). */
#include "driver/refusal.h"
#include "driver/report.h"
#include "modules/modules.h"
#include "process/mapped.h"
#include "telemetry/counters.h"

#include <stdlib.h>
#include <string.h>

/* At most MOST_CHANGING known names are no constants of the program. */
enum { NAME_BUCKETS = 1 << 16, MOST_CHANGING = 1 << 16 };

static const char expression[] = "hipModuleGetFunction(&function, module, name)";

static struct advice null_module = {
    .text = "the program looked up kernel '%s' in a null module. Either the module's load failed "
            "(see the first message), or the program's constructors never ran. With Python's "
            "ExecutionEngine of LLVM 22 and later, call initialize() before invoke()",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};
static struct advice unknown_kernel = {
    .text =
        "module %p has no kernel '%s': `mgpu-rt inspect PROGRAM` lists the kernels of each image",
    .leads_to = NULL_FUNCTION};
static struct advice unloaded_module = {
    .text = "the program looked up kernel '%s' in module %p after mgpuModuleUnload",
    .leads_to = NULL_FUNCTION};
static struct advice foreign_module = {
    .text = "the program looked up kernel '%s' in %p: no mgpuModuleLoad returned this module, or "
            "the module has no such kernel",
    .leads_to = NULL_FUNCTION,
    .follows = NULL_MODULE};

/* ---- functions by address ---- */

/* A function that the program has looked up by a name at an address. The entry's handle is
 * function_key. Threads write the other members under tables_lock, `function` last. */
struct known_function {
    struct handle handle;
    struct function *function; /* NULL: not filled yet */
    bool constant; /* the name can neither change nor be unmapped: a hit skips the comparison */
};

static struct handle_map known_functions = HANDLE_MAP(struct known_function);

/* Two names of one module have different keys. Two modules could have one key for two names: the
 * library then knows the pair that came first. */
static inline const void *function_key(hipModule_t handle, const char *name) {
    const uintptr_t of = PROOF_VALUE(function_is_of_the_module, (uintptr_t)handle, 0);
    return (const void *)(of * UINT64_C(0xD6E8FEB86659FD93) + (uintptr_t)name);
}

static inline bool function_is_of(const struct function *function, hipModule_t handle) {
    return PROOF(function_is_of_the_module, module_handle(function->module) == handle);
}

/* A look-up that the table does not answer. */
struct lookup {
    const char *name;
    struct module *module;
    uint32_t version; /* the module's version when the look-up began */
};

/* Records which function has the name at this address. A name that is no constant may have been
 * that of another function before. */
static void know_function(const struct lookup *lookup, struct function *function) {
    static size_t changing; /* under tables_lock */
    const char *name = lookup->name;
    const hipModule_t of = module_handle(lookup->module);
    const void *key = function_key(of, name);
    struct known_function *known = handle_find(&known_functions, key);
    bool constant = false;
    if (!known) {
        constant = PROOF(name_stays_as_it_is, mapped_for_good(name, strlen(name) + 1));
        if (constant || load_relaxed(&changing) < MOST_CHANGING)
            known = handle_insert(&known_functions, key);
    }
    if (!known)
        return;
    pthread_mutex_lock(&tables_lock);
    if (!known->function) {
        known->constant = constant;
        store_relaxed(&changing, changing + !constant);
        store_release(&known->function, function);
    } else if (function_is_of(known->function, of)) {
        store_release(&known->function, function);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* ---- functions by name, under tables_lock ---- */

static struct function *named[NAME_BUCKETS];

static struct function **name_bucket(const struct module *module, const char *name) {
    uint64_t hash = (uintptr_t)module;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x9E3779B97F4A7C15);
    return &named[hash >> 32 & (NAME_BUCKETS - 1)];
}

static struct function *find_function(const struct module *module, const char *name) {
    struct function *function = *name_bucket(module, name);
    while (function && (function->module != module || strcmp(function->name, name) != 0))
        function = function->next_named;
    return function;
}

/* Returns HIP's answer to an earlier look-up; NULL if there was no such look-up. */
static hipFunction_t function_lookup_table(const struct lookup *lookup) {
    pthread_mutex_lock(&tables_lock);
    struct function *function = find_function(lookup->module, lookup->name);
    hipFunction_t handle = function ? function->handle : NULL;
    pthread_mutex_unlock(&tables_lock);
    if (handle)
        know_function(lookup, function);
    return handle;
}

static struct function *function_new(struct module *module, const char *name) {
    const size_t length = strlen(name) + 1;
    struct function *function = malloc(sizeof *function + length);
    if (!function)
        return NULL;
    function->module = module;
    memcpy(function->name, name, length);
    return function;
}

/* Returns the table's entry for the name; if there is none, inserts and returns `fresh`. */
static struct function *insert_function(struct module *module, struct function *fresh) {
    struct function *function = find_function(module, fresh->name);
    struct function **bucket = name_bucket(module, fresh->name);
    if (function)
        return function;
    fresh->next_named = *bucket;
    fresh->next = module->functions;
    return *bucket = module->functions = fresh;
}

/* Caches HIP's answer. The function caches nothing if the module has ended since the look-up began,
 * or if there is no memory. */
static void function_insert(const struct lookup *lookup, hipFunction_t handle) {
    struct function *fresh = function_new(lookup->module, lookup->name), *function = NULL;
    if (!fresh)
        return;
    pthread_mutex_lock(&tables_lock);
    if (module_version(lookup->module) == lookup->version) {
        function = insert_function(lookup->module, fresh);
        store_release(&function->handle, handle); /* threads read the handle without the lock */
    }
    pthread_mutex_unlock(&tables_lock);
    if (function)
        know_function(lookup, function);
    if (function != fresh)
        free(fresh);
}

/* ---- what the table by address does not answer ----
 *
 * HIP 7 loads a module at the first look-up, perhaps where the program had memory. */

static hipFunction_t get_directly(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    call_tell(CALL_BYPASS);
    REPORT(expression, hip.ModuleGetFunction(&function, module, name),
           PROOF(module_is_not_null, module) ? &foreign_module : &null_module,
           name ? name : "(null)", (void *)module);
    PROOF_STEP(lookup_ends_the_answers_about_addresses, ranges_change());
    return function;
}

/* Asks HIP, and caches the answer if the cache of functions is on. */
static hipFunction_t ask_function(const struct lookup *lookup) {
    hipFunction_t function = NULL;
    call_tell(CALL_BYPASS);
    const hipError_t error =
        hip.ModuleGetFunction(&function, module_handle(lookup->module), lookup->name);
    PROOF_STEP(lookup_ends_the_answers_about_addresses, ranges_change());
    if (error != hipSuccess) {
        report_failure(expression, error, &unknown_kernel, (void *)module_handle(lookup->module),
                       lookup->name);
    } else if (cache_is_on(CACHE_FUNCTIONS)) {
        stats_miss(CACHE_FUNCTIONS);
        function_insert(lookup, function);
    }
    return function;
}

static __attribute__((noinline)) hipFunction_t get_slow(hipModule_t handle, const char *name) {
    (void)thread_get(); /* the thread's first call chooses the device */
    struct module *module = caches_on() ? handle_find(&module_map, handle) : NULL;
    const int state = module ? module_state_asked(module) : MODULE_GONE;
    if (name && PROOF(refused_module_was_unloaded, state == MODULE_IDLE)) {
        REPORT(expression, refusal_of_module(), &unloaded_module, name, (void *)handle);
        return NULL;
    }
    if (state == MODULE_GONE || !name)
        return get_directly(handle, name);
    const struct lookup lookup = {name, module, module_version(module)};
    const hipFunction_t known =
        cache_is_on(CACHE_FUNCTIONS) ? function_lookup_table(&lookup) : NULL;
    return known ? known : ask_function(&lookup);
}

/* Compares the name, and returns the function's handle if the name is the function's. */
static __attribute__((noinline)) hipFunction_t get_compared(hipModule_t module, const char *name,
                                                            const struct function *function) {
    const hipFunction_t handle = PROOF(function_has_the_name, strcmp(function->name, name) == 0)
                                     ? load_relaxed(&function->handle)
                                     : NULL;
    return handle ? handle : get_slow(module, name);
}

/* A hit: the table has HIP's answer to an earlier look-up, and the program holds the module. When a
 * module ends, its state changes before its functions lose their handles. */
inline hipFunction_t impl_mgpuModuleGetFunction(hipModule_t module, const char *name) {
    const struct known_function *known = handle_find(&known_functions, function_key(module, name));
    const struct function *function = LIKELY(known != NULL) ? load_acquire(&known->function) : NULL;
    if (UNLIKELY(!function || !function_is_of(function, module) ||
                 module_state(function->module) != MODULE_LIVE))
        return get_slow(module, name);
    if (UNLIKELY(!known->constant))
        return get_compared(module, name, function);
    const hipFunction_t handle = load_relaxed(&function->handle);
    return LIKELY(handle) ? handle : get_slow(module, name);
}
