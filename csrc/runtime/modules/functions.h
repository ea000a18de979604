/* The functions of modules that are kept, by name, and a thread's slots of them.
 *
 * A hit costs about 25 instructions. It also compares the name unless that is a constant of the
 * program (mapped_for_good). By its name only, a function of one module would be taken for
 * another's, and a JIT may reuse the address of a name. */
#ifndef MGPU_RT_FUNCTIONS_H
#define MGPU_RT_FUNCTIONS_H

#include "likely.h"
#include "mgpu.h"
#include "modules/modules.h"
#include "proof.h"
#include "shared/slots.h"
#include "shared/thread.h"
#include "shared/types.h"

#include <string.h>

static inline hipFunction_t function_handle(const struct function *function) {
    return load_relaxed(&function->handle);
}

/* The program holds the module, and the module is the one that was asked: so the answer is HIP's
 * still. */
static inline bool function_slot_serves(const struct slot *slot, hipModule_t handle,
                                        const char *name) {
    return PROOF(function_is_of_the_module, slot->of == handle) && slot->key == name &&
           slot->version_and_state == load_acquire(&slot->module->version_and_state) &&
           (slot->constant ||
            PROOF(function_has_the_name, strcmp(slot->function->name, name) == 0));
}

/* The hit of a look-up: what the thread has asked for lately. NULL if that is not this. */
static inline hipFunction_t function_lookup_thread(const struct thread *thread, hipModule_t handle,
                                                   const char *name) {
    const struct slot *slot = slot_home(&thread->functions, handle, name);
    return LIKELY(slot->module && function_slot_serves(slot, handle, name))
               ? function_handle(slot->function)
               : NULL;
}

/* The same of the other slots that the name may have. */
hipFunction_t function_probe_thread(const struct thread *thread, hipModule_t handle,
                                    const char *name);

/* A look-up that no slot of the thread serves. */
struct lookup {
    struct thread *thread;
    const char *name;
    struct module *module;
    uint32_t version; /* of it, when the look-up began */
};

/* HIP's earlier answer; NULL if it was not asked. */
hipFunction_t function_lookup_table(const struct lookup *lookup);

/* Keeps HIP's answer, unless the module's entry serves another one by now, or without memory. */
void function_insert(const struct lookup *lookup, hipFunction_t handle);

#endif
