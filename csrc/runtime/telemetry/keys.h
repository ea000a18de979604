/* A bounded table of keys, from which none is removed. Two threads may insert keys at once, without
 * a lock or an allocation. Keys stay for good; without room a key is not found.
 */
#ifndef MGPU_RT_KEYS_H
#define MGPU_RT_KEYS_H

#include "atomics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_WINDOW = 32 }; /* places that a key may have */

/* Returns the i-th place of a key in a table of `size` places, a power of two. */
static inline size_t key_place(uint64_t key, size_t size, size_t i) {
    return ((size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) + i) & (size - 1);
}

/* Returns the place of a key other than 0; `size` if it is not there. */
static inline size_t key_find(const uint64_t *keys, size_t size, uint64_t key) {
    for (size_t i = 0; i < KEY_WINDOW; i++) {
        const size_t place = key_place(key, size, i);
        const uint64_t found = load_acquire(&keys[place]);
        if (found == key)
            return place;
        if (!found)
            break;
    }
    return size;
}

/* Returns the place of a key; inserts it first if there is room, and tells whether this call
 * did. */
static inline size_t key_enter(uint64_t *keys, size_t size, uint64_t key, bool *fresh) {
    *fresh = false;
    for (size_t i = 0; i < KEY_WINDOW; i++) {
        const size_t place = key_place(key, size, i);
        uint64_t found = load_acquire(&keys[place]);
        if (!found && cas_acq_rel_acquire(&keys[place], &found, key)) {
            *fresh = true;
            return place;
        }
        if (found == key)
            return place;
    }
    return size;
}

#endif
