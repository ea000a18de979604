#include "shared/handles.h"
#include "process/state.h"
#include "proof.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACE_BITS = 8 };

struct handle_table handle_no_table = {.shift = 63, .mask = 1};

static struct handle_table *table_new(unsigned bits) {
    const size_t places = (size_t)1 << bits;
    struct handle_table *table = calloc(1, sizeof *table + places * sizeof *table->places);
    if (!table)
        return NULL;
    table->shift = 64 - bits;
    table->mask = places - 1;
    return table;
}

/* A table of twice as many places as the map's, if that is half full; else NULL, as without
 * memory. */
static struct handle_table *larger_table(const struct handle_map *map) {
    const struct handle_table *table = load_acquire(&map->table);
    if (table == &handle_no_table)
        return table_new(FIRST_PLACE_BITS);
    return 2 * load_relaxed(&map->count) < table->mask ? NULL : table_new(65 - table->shift);
}

static void put_entry(struct handle_table *table, struct handle *entry) {
    size_t place = handle_place(table, entry->key);
    while (table->places[place])
        place = (place + 1) & table->mask;
    store_release(&table->places[place], entry);
}

/* Makes a table the map's, unless another thread has done so meanwhile. Under tables_lock. */
static bool replace(struct handle_map *map, struct handle_table *larger) {
    if (!larger || larger->mask <= map->table->mask)
        return false;
    for (struct handle *entry = map->all; entry; entry = entry->next)
        put_entry(larger, entry);
    store_release(&map->table, larger);
    return true;
}

/* False if there is no room: one place stays empty, where each search ends. Under tables_lock. */
static bool add(struct handle_map *map, struct handle *entry) {
    if (map->table == &handle_no_table || DOUBT(table_is_full, map->count >= map->table->mask))
        return false;
    entry->next = map->all;
    put_entry(map->table, entry);
    store_release(&map->all, entry);
    store_relaxed(&map->count, map->count + 1);
    return true;
}

/* The entry of fresh's key: fresh itself unless another thread has entered one meanwhile. NULL if
 * there is no room. */
static struct handle *enter(struct handle_map *map, struct handle *fresh) {
    struct handle_table *larger = larger_table(map);
    pthread_mutex_lock(&tables_lock);
    if (replace(map, larger))
        larger = NULL;
    struct handle *entry = handle_find(map, fresh->key);
    if (!entry && add(map, fresh))
        entry = fresh;
    pthread_mutex_unlock(&tables_lock);
    free(larger);
    return entry;
}

static struct handle *entry_new(const struct handle_map *map, const void *key) {
    struct handle *entry = aligned_alloc(map->alignment, map->size);
    if (DOUBT(memory_is_lacking_for_the_entry, !entry))
        return NULL;
    memset(entry, 0, map->size);
    entry->key = key;
    return entry;
}

void *handle_insert(struct handle_map *map, const void *key) {
    struct handle *entry = handle_find(map, key);
    struct handle *fresh = entry ? NULL : entry_new(map, key);
    if (!fresh)
        return entry;
    entry = enter(map, fresh);
    if (entry != fresh)
        free(fresh);
    return entry;
}
