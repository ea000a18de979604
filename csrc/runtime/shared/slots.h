/* A thread's tables of its latest modules and functions.
 *
 * The size of a table of slots is a power of two, and doubles when the table is half full, up to
 * the largest size. A key maps to a slot; that slot or one of the next three serves the key. Images
 * and names lie at regular distances in memory, so several keys map to one slot even if most slots
 * are empty. */
#ifndef MGPU_RT_SLOTS_H
#define MGPU_RT_SLOTS_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIRST_SLOT_BITS = 6, LAST_SLOT_BITS = 16, SLOT_WINDOW = 4 };

struct module;
struct function;

/* A slot records the module whose image was at an address, or the function that has a name in a
 * module. Only the slot's thread reads and writes the slot. */
struct slot {
    const void *key;            /* the address of the image, or of the name */
    hipModule_t of;             /* the module of the function; NULL for an image */
    struct module *module;      /* NULL: the slot was never filled */
    struct function *function;  /* the function; NULL for an image */
    uint64_t version_and_state; /* the slot serves a call only if the module's entry has this
                                 * version and state. The state is MODULE_IDLE in an image's slot,
                                 * and MODULE_LIVE in a name's slot */
    bool constant;      /* the bytes at the key can neither change nor be unmapped: a hit skips the
                         * comparison */
    uint64_t unused[2]; /* padding to 64 bytes, so that a shift converts a slot's index to an offset
                         * in the table */
};

struct slots {
    struct slot *table;
    unsigned bits;
    size_t count; /* number of slots that were ever filled */
};

/* Returns the slot to which a key maps: the upper bits of a product depend on all bits of the key.
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

/* Allocates the slots; returns false if there is no memory. */
bool slots_init(struct slots *slots);

/* Returns the slot that serves a key from now on. */
struct slot *slot_choose(struct slots *slots, hipModule_t of, const void *key);

#endif
