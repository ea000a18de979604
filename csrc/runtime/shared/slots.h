/* A thread's tables of its latest modules and functions.
 *
 * Slots lie in tables of a power of two that double when they are half full, up to the last size. A
 * key leads to a slot; that slot or one of the next three serves. Images and names lie in rows, so
 * several keys lead to one slot even if most slots are empty. */
#ifndef MGPU_RT_SLOTS_H
#define MGPU_RT_SLOTS_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIRST_SLOT_BITS = 6, LAST_SLOT_BITS = 16, SLOT_WINDOW = 4 };

struct module;
struct function;

/* A slot means "at this address lay the image of this module", or "this name in this module is this
 * function". Only its thread reads and writes it. */
struct slot {
    const void *key;            /* the address of the image, or of the name */
    hipModule_t of;             /* the function's module; NULL for an image */
    struct module *module;      /* NULL: never filled */
    struct function *function;  /* NULL for an image */
    uint64_t version_and_state; /* of the module's entry when the slot serves: idle for a load, held
                                   by the program for a function */
    bool constant; /* the bytes at the key can neither change nor go away: a hit need not compare */
    uint64_t unused[2]; /* make 64 bytes: a slot's place takes one shift */
};

struct slots {
    struct slot *table;
    unsigned bits;
    size_t count; /* slots that were ever filled */
};

/* Returns the slot that a key leads to: the upper bits of a product depend on all bits of the key.
 */
static inline struct slot *slot_home(const struct slots *slots, hipModule_t of, const void *key) {
    const uint64_t mixed = ((uintptr_t)of * 31 + (uintptr_t)key) * UINT64_C(0x9E3779B97F4A7C15);
    return &slots->table[mixed >> (64 - slots->bits)];
}

/* Returns the next slot that may serve a key. */
static inline struct slot *slot_after(const struct slots *slots, const struct slot *slot) {
    const size_t mask = ((size_t)1 << slots->bits) - 1;
    return &slots->table[(size_t)(slot + 1 - slots->table) & mask];
}

/* Makes the slots; returns false without memory. */
bool slots_init(struct slots *slots);

/* Returns the slot that serves a key from here on. */
struct slot *slot_choose(struct slots *slots, hipModule_t of, const void *key);

#endif
