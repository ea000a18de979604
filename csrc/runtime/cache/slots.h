/* A thread's tables of the modules and functions that it had lately (thread.h).
 *
 * Slots lie in tables of a power of two that double when they are half full, up to the last size. A
 * key leads to a slot; it or one of the next three serves. Images and names lie in rows, so several
 * keys lead to one slot even if most slots are empty. */
#ifndef MGPU_RT_SLOTS_H
#define MGPU_RT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

enum { LAST_SLOT_BITS = 16, SLOT_WINDOW = 4 };

/* The slot that a key leads to: the upper bits of a product depend on all bits of the key. */
static inline size_t slot_home(uintptr_t key, unsigned bits) {
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits));
}

#endif
