#include "cache/slots.h"
#include "cache/modules.h"

#include <stdlib.h>

void slots_grow_modules(struct thread *thread) {
    const size_t old = (size_t)1 << thread->module_bits;
    if (thread->module_count * 2 < old || thread->module_bits == LAST_SLOT_BITS)
        return;
    const unsigned bits = thread->module_bits + 1;
    struct module_slot *slots = calloc(2 * old, sizeof *slots);
    if (!slots)
        return;
    thread->module_count = 0;
    for (size_t i = 0; i < old; i++) {
        const struct module_slot *slot = &thread->modules[i];
        if (!slot->module || slot->generation != module_generation(slot->module))
            continue;
        slots[slot_home((uintptr_t)slot->image, bits)] = *slot;
        thread->module_count++;
    }
    free(thread->modules);
    thread->modules = slots;
    thread->module_bits = bits;
}

void slots_grow_functions(struct thread *thread) {
    const size_t old = (size_t)1 << thread->function_bits;
    if (thread->function_count * 2 < old || thread->function_bits == LAST_SLOT_BITS)
        return;
    const unsigned bits = thread->function_bits + 1;
    struct function_slot *slots = calloc(2 * old, sizeof *slots);
    if (!slots)
        return;
    thread->function_count = 0;
    for (size_t i = 0; i < old; i++) {
        const struct function_slot *slot = &thread->functions[i];
        if (!slot->module || slot->generation != module_generation(slot->module))
            continue;
        slots[function_home(slot->handle, slot->name, bits)] = *slot;
        thread->function_count++;
    }
    free(thread->functions);
    thread->functions = slots;
    thread->function_bits = bits;
}
