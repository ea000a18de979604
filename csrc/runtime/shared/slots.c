#include "shared/slots.h"
#include "atomics.h"
#include "shared/types.h"

#include <stdlib.h>

bool slots_init(struct slots *slots) {
    *slots = (struct slots){calloc((size_t)1 << FIRST_SLOT_BITS, sizeof *slots->table),
                            FIRST_SLOT_BITS, 0};
    return slots->table != NULL;
}

/* Returns whether the entry still serves the slot's module. */
static bool slot_is_valid(const struct slot *slot) {
    return slot->module && slot->version_and_state >> 32 == load_acquire(&slot->module->version);
}

/* Doubles a table that is half full. If there is no memory for a larger table, the table keeps its
 * size, and a new key may replace an older key. */
static void grow(struct slots *slots) {
    const size_t old = (size_t)1 << slots->bits;
    if (slots->count * 2 < old || slots->bits == LAST_SLOT_BITS)
        return;
    struct slots larger = {calloc(2 * old, sizeof *larger.table), slots->bits + 1, 0};
    if (!larger.table)
        return;
    for (const struct slot *slot = slots->table; slot < slots->table + old; slot++)
        if (slot_is_valid(slot)) {
            *slot_home(&larger, slot->of, slot->key) = *slot;
            larger.count++;
        }
    free(slots->table);
    *slots = larger;
}

/* Chooses one of the slots that may serve a key: the slot that has the key, else the first invalid
 * slot, else the first slot. The table grows before it is full, so a valid first slot is seldom
 * overwritten. */
struct slot *slot_choose(struct slots *slots, hipModule_t of, const void *key) {
    grow(slots);
    struct slot *const home = slot_home(slots, of, key);
    struct slot *slot = home, *chosen = NULL;
    for (unsigned i = 0; i < SLOT_WINDOW; i++, slot = slot_after(slots, slot)) {
        if (slot->key == key && slot->of == of)
            return slot;
        if (!chosen && !slot_is_valid(slot))
            chosen = slot;
    }
    if (!chosen)
        chosen = home;
    slots->count += !chosen->module;
    return chosen;
}
