/* Maps a handle of HIP to the library's entry for it.
 *
 * A lookup takes no lock: about 12 instructions and two cache lines, regardless of the number of
 * entries. Entries are never removed or freed, so a reader may access any entry at any time. The
 * owner of an object changes the state of its entry when the object is destroyed. HIP may return
 * the object's handle again, as allocators do. The handle's entry then serves the new object. An
 * entry costs 64 to 256 bytes for each handle that ever existed.
 *
 * A table is an array of pointers, at most half full; a search starts at the key's place. When a
 * table is half full, a larger table replaces it and contains all entries of the smaller table. The
 * smaller table remains for readers that have already started. The smaller table contains all
 * entries that were inserted before such a reader started. */
#ifndef MGPU_RT_HANDLES_H
#define MGPU_RT_HANDLES_H

#include "atomics.h"
#include "likely.h"

/* The first member of each entry. */
struct handle {
    const void *key;     /* written once, before the entry becomes visible */
    struct handle *next; /* links all entries, newest first */
};

struct handle_table {
    unsigned shift; /* a key's place is the key's hash, shifted right by this number of bits */
    size_t mask;    /* number of places, minus one */
    struct handle *places[2]; /* or more */
};

struct handle_map {
    struct handle_table *table;
    struct handle *all;
    size_t count;
    size_t size, alignment; /* size of an entry */
};

/* The table of an empty map. */
extern struct handle_table handle_no_table;
#define HANDLE_MAP(type)                                                                           \
    {.table = &handle_no_table, .size = sizeof(type), .alignment = _Alignof(type)}

/* Returns an even distribution of addresses. Handles lie at regular distances. One product maps the
 * multiples of some distances to a few values, and a search would visit hundreds of entries. */
static inline uint64_t handle_hash(uintptr_t address) {
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    return __builtin_bswap64(address * odd) * odd;
}

static inline size_t handle_place(const struct handle_table *table, const void *key) {
    return handle_hash((uintptr_t)key) >> table->shift;
}

/* Returns the entry of a handle, or NULL. Lock-free. */
static inline void *handle_find(const struct handle_map *map, const void *key) {
    const struct handle_table *table = load_acquire(&map->table);
    size_t place = handle_place(table, key);
    struct handle *entry = load_acquire(&table->places[place]);
    while (UNLIKELY(entry && entry->key != key)) {
        place = (place + 1) & table->mask;
        entry = load_acquire(&table->places[place]);
    }
    return entry;
}

/* Returns the entry of a handle; if there is none, creates an entry that is zero except for its
 * key. Returns NULL if there is no memory. Takes tables_lock, which the caller must not hold.
 * Allocates before taking tables_lock. */
void *handle_insert(struct handle_map *map, const void *key);

/* Returns the newest of all entries. */
static inline void *handle_first(const struct handle_map *map) {
    return load_acquire(&map->all);
}
static inline void *handle_next(const void *entry) {
    return ((const struct handle *)entry)->next;
}

#endif
