#include "modules/functions.h"
#include "process/mapped.h"
#include "process/state.h"
#include "proof.h"

#include <stdlib.h>

/* ---- a thread's slots ---- */

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

__attribute__((noinline)) hipFunction_t function_probe_thread(const struct thread *thread,
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

hipFunction_t function_lookup_table(const struct lookup *lookup) {
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

/* The entry of the name: `fresh`, unless there was one. */
static struct function *insert_function(struct module *module, struct function *fresh) {
    struct function *function = find_function(module, fresh->name);
    if (function)
        return function;
    fresh->next = module->functions;
    return module->functions = fresh;
}

void function_insert(const struct lookup *lookup, hipFunction_t handle) {
    struct function *fresh = function_new(lookup->name), *function = NULL;
    if (!fresh)
        return;
    pthread_mutex_lock(&tables_lock);
    if (module_version(lookup->module) == lookup->version) {
        function = insert_function(lookup->module, fresh);
        store_release(&function->handle, handle); /* read without the lock */
    }
    pthread_mutex_unlock(&tables_lock);
    if (function)
        bind_function_slot(lookup, function);
    if (function != fresh)
        free(fresh);
}
