/* A sorted array under a sequence lock: few writes, each beside a call of HIP that costs far more,
 * and a binary search for each copy. */
#include "ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256, ATTEMPTS = 4 };

struct range {
    uintptr_t begin, end;
    uintptr_t kind;
};

static struct range *table; /* a larger one replaces it; the old one stays, for late readers */
static size_t count, capacity;
static uint64_t sequence; /* odd while it is written */
static bool overlapping;

static uintptr_t get(const uintptr_t *field) {
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static void set(struct range *to, struct range range) {
    __atomic_store_n(&to->begin, range.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&to->end, range.end, __ATOMIC_RELAXED);
    __atomic_store_n(&to->kind, range.kind, __ATOMIC_RELAXED);
}

static void begin_write(void) {
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_write(void) {
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELEASE);
}

/* Index of the first range that ends after an address. */
static size_t search(const struct range *ranges, size_t ranges_count, uintptr_t address) {
    size_t low = 0;
    while (low < ranges_count) {
        const size_t middle = (low + ranges_count) / 2;
        if (get(&ranges[middle].end) <= address)
            low = middle + 1;
        else
            ranges_count = middle;
    }
    return low;
}

static bool grow(void) {
    const size_t wanted = capacity ? 2 * capacity : FIRST_CAPACITY;
    struct range *larger = malloc(wanted * sizeof *larger);
    if (!larger)
        return false;
    if (count)
        memcpy(larger, table, count * sizeof *larger);
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
    capacity = wanted;
    return true;
}

void ranges_add(uintptr_t begin, size_t bytes, enum range_kind kind) {
    const size_t at = search(table, count, begin);
    if ((at < count && table[at].begin < begin + bytes) || (count == capacity && !grow())) {
        __atomic_store_n(&overlapping, true, __ATOMIC_RELEASE);
        return;
    }
    begin_write();
    for (size_t i = count; i > at; i--)
        set(&table[i], table[i - 1]);
    set(&table[at], (struct range){begin, begin + bytes, kind});
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    end_write();
}

void ranges_remove(uintptr_t begin) {
    const size_t at = search(table, count, begin);
    if (at == count || table[at].begin != begin)
        return;
    begin_write();
    for (size_t i = at; i + 1 < count; i++)
        set(&table[i], table[i + 1]);
    __atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
    end_write();
}

static enum range_kind look(uintptr_t begin, uintptr_t end) {
    const size_t ranges_count = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    const struct range *ranges = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    const size_t at = search(ranges, ranges_count, begin);
    if (at == ranges_count || get(&ranges[at].begin) >= end)
        return RANGE_NONE;
    return get(&ranges[at].begin) <= begin && end <= get(&ranges[at].end)
               ? (enum range_kind)get(&ranges[at].kind)
               : RANGE_MIXED;
}

enum range_kind ranges_find(const void *address, size_t bytes) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const uint64_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);
        if (before & 1)
            continue;
        const enum range_kind kind = look((uintptr_t)address, (uintptr_t)address + bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&sequence, __ATOMIC_RELAXED) == before)
            return __atomic_load_n(&overlapping, __ATOMIC_RELAXED) ? RANGE_MIXED : kind;
    }
    return RANGE_MIXED;
}
