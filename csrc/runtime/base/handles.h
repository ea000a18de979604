/* A map from a handle of HIP's to what the runtime knows of it.
 *
 * Lookup takes no lock: about 6 instructions and one or two cache lines. Entries are added under
 * the map's lock and are never removed or freed, so a reader can follow the chains at any time; an
 * entry whose object was destroyed is marked by its owner, and is used again when HIP hands out the
 * same handle once more, as allocators do. The cost is 64 to 128 bytes for each handle ever seen.
 */
#ifndef MGPU_RT_HANDLES_H
#define MGPU_RT_HANDLES_H

#include "base/atomics.h"

#include <stddef.h>
#include <stdint.h>

enum { HANDLE_BUCKETS = 256 };

/* First member of each entry. */
struct handle {
    const void *key;
    struct handle *next_in_bucket; /* written once, before the entry can be seen */
    struct handle *next;           /* all entries, newest first */
};

struct handle_map {
    struct handle *buckets[HANDLE_BUCKETS];
    struct handle *all;
};

static inline size_t handle_bucket(const void *key) {
    /* HIP's handles come from malloc: the low 4 bits are 0. */
    const uintptr_t bits = (uintptr_t)key >> 4;
    return (bits ^ (bits >> 8)) % HANDLE_BUCKETS;
}

/* The entry of a handle, or NULL. Lock-free. */
static inline void *handle_find(const struct handle_map *map, const void *key) {
    struct handle *entry = load_acquire(&map->buckets[handle_bucket(key)]);
    while (entry && entry->key != key)
        entry = entry->next_in_bucket;
    return entry;
}

/* Adds an entry; its key must not be in the map. The caller holds the lock that guards the map. */
static inline void handle_add(struct handle_map *map, struct handle *entry) {
    struct handle **bucket = &map->buckets[handle_bucket(entry->key)];
    entry->next_in_bucket = *bucket;
    entry->next = map->all;
    store_release(bucket, entry);
    store_release(&map->all, entry);
}

static inline void *handle_first(const struct handle_map *map) {
    return load_acquire(&map->all);
}

#endif
