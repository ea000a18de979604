#include "shared/handles.h"
#include "process/state.h"
#include "proof.h"

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

/* Returns a table of twice the size if the map's table is half full. Returns NULL if the map's
 * table is less full, or if there is no memory. */
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

void *handle_insert(struct handle_map *map, const void *key) {
    struct handle *entry = handle_find(map, key);
    if (entry)
        return entry;
    struct handle *fresh = aligned_alloc(map->alignment, map->size);
    if (DOUBT(memory_is_lacking_for_the_entry, !fresh))
        return NULL;
    memset(fresh, 0, map->size);
    fresh->key = key;
    struct handle_table *larger = larger_table(map);
    pthread_mutex_lock(&tables_lock);
    if (larger && larger->mask > map->table->mask) { /* no other thread has created a table in
                                                      * between */
        for (entry = map->all; entry; entry = entry->next)
            put_entry(larger, entry);
        store_release(&map->table, larger);
        larger = NULL;
    }
    entry = handle_find(map, key); /* another thread may have inserted an entry in between */
    const bool is_full =           /* one place stays empty, so that each search ends */
        map->table == &handle_no_table || DOUBT(table_is_full, map->count >= map->table->mask);
    if (!entry && !is_full) {
        entry = fresh;
        entry->next = map->all;
        put_entry(map->table, entry);
        store_release(&map->all, entry);
        store_relaxed(&map->count, map->count + 1);
    }
    pthread_mutex_unlock(&tables_lock);
    free(larger);
    if (entry != fresh)
        free(fresh);
    return entry;
}
