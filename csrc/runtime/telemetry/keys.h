/* A bounded table of keys that are never removed. Two threads may insert keys concurrently, without
 * a lock or an allocation. A key may use KEY_WINDOW places. If other keys occupy all these places,
 * the table cannot store the key. */
#ifndef MGPU_RT_KEYS_H
#define MGPU_RT_KEYS_H

#include "atomics.h"

enum { KEY_WINDOW = 32 }; /* number of places that a key may use */

/* Returns the i-th place of a key in a table of `size` places, a power of two. */
static inline size_t key_place(uint64_t key, size_t size, size_t i) {
    return ((size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) + i) & (size - 1);
}

/* Returns the place of a key, or `size` if the table does not contain the key. The key must not be
 * 0. */
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

/* Returns the place of a key, or `size` if the table has no space for the key. Inserts a missing
 * key. *fresh tells whether this call has inserted the key. */
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
