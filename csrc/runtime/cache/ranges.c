/* A sorted array and a few newcomers beside it, under a sequence lock: few writes, each beside a
 * call of HIP that costs far more, and a binary search and a short scan for each copy. What leaves
 * the array stays as a gap until the newcomers are merged in, so that a program which holds 100,000
 * blocks does not shift them for each one more. */
#include "cache/ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NEWCOMERS = 32, FIRST_CAPACITY = 1024, ATTEMPTS = 4 };

struct range {
    uintptr_t begin, end;
    uintptr_t kind; /* RANGE_NONE: a gap */
};

/* A larger array replaces it; the old one stays, for late readers: less than as much again. */
static struct range *sorted;
static size_t sorted_count, capacity;
static struct range newcomers[NEWCOMERS];
static size_t newcomer_count;
static uint64_t sequence; /* odd while it is written */
static bool incomplete;   /* for good: there was no memory */
uint64_t ranges_changes;

static uintptr_t get(const uintptr_t *field) {
    return load_relaxed(field);
}

static void set(struct range *to, struct range range) {
    store_relaxed(&to->begin, range.begin);
    store_relaxed(&to->end, range.end);
    store_relaxed(&to->kind, range.kind);
}

static void begin_write(void) {
    store_relaxed(&sequence, sequence + 1);
    fence_seq_cst();
}

static void end_write(void) {
    store_release(&sequence, sequence + 1);
}

/* ---- looking ---- */

/* Index of the first range that ends after an address. */
static size_t search(const struct range *ranges, size_t count, uintptr_t address) {
    size_t low = 0;
    while (low < count) {
        const size_t middle = (low + count) / 2;
        if (get(&ranges[middle].end) <= address)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* What these bytes are, if only this range is there. */
static enum range_kind kind_in(const struct range *range, uintptr_t begin, uintptr_t end) {
    const enum range_kind kind = (enum range_kind)get(&range->kind);
    if (kind == RANGE_NONE || get(&range->end) <= begin || get(&range->begin) >= end)
        return RANGE_NONE;
    return get(&range->begin) <= begin && end <= get(&range->end) ? kind : RANGE_MIXED;
}

static enum range_kind look_up(uintptr_t begin, uintptr_t end) {
    const size_t count = load_acquire(&sorted_count);
    const struct range *ranges = load_acquire(&sorted);
    for (size_t i = search(ranges, count, begin); i < count && get(&ranges[i].begin) < end; i++) {
        const enum range_kind kind = kind_in(&ranges[i], begin, end);
        if (kind != RANGE_NONE)
            return kind;
    }
    const size_t new_count = load_relaxed(&newcomer_count);
    for (size_t i = 0; i < new_count && i < NEWCOMERS; i++) {
        const enum range_kind kind = kind_in(&newcomers[i], begin, end);
        if (kind != RANGE_NONE)
            return kind;
    }
    return RANGE_NONE;
}

enum range_kind ranges_find(const void *address, size_t bytes) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const uint64_t before = load_acquire(&sequence);
        if (before & 1)
            continue;
        const enum range_kind kind = look_up((uintptr_t)address, (uintptr_t)address + bytes);
        fence_acquire();
        if (load_relaxed(&sequence) == before)
            return load_relaxed(&incomplete) ? RANGE_MIXED : kind;
    }
    return RANGE_MIXED;
}

/* ---- changing ---- */

static bool grow(size_t wanted) {
    size_t larger_capacity = capacity ? capacity : FIRST_CAPACITY;
    while (larger_capacity < wanted)
        larger_capacity *= 2;
    if (larger_capacity == capacity)
        return true;
    struct range *larger = calloc(larger_capacity, sizeof *larger);
    if (!larger)
        return false;
    if (sorted_count)
        memcpy(larger, sorted, sorted_count * sizeof *larger);
    store_release(&sorted, larger);
    capacity = larger_capacity;
    return true;
}

static int by_begin(const void *a, const void *b) {
    const struct range *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

static void close_gaps(void) {
    size_t kept = 0;
    for (size_t i = 0; i < sorted_count; i++)
        if (sorted[i].kind != RANGE_NONE)
            set(&sorted[kept++], sorted[i]);
    store_release(&sorted_count, kept);
}

/* The newcomers take their places, from the end on. False without memory. */
static bool merge(void) {
    close_gaps();
    if (!grow(sorted_count + newcomer_count))
        return false;
    qsort(newcomers, newcomer_count, sizeof *newcomers, by_begin);
    size_t from = sorted_count, to = sorted_count + newcomer_count;
    for (size_t next = newcomer_count; next > 0;) {
        if (from > 0 && sorted[from - 1].begin > newcomers[next - 1].begin)
            set(&sorted[--to], sorted[--from]);
        else
            set(&sorted[--to], newcomers[--next]);
    }
    store_release(&sorted_count, sorted_count + newcomer_count);
    store_relaxed(&newcomer_count, 0);
    return true;
}

/* A range that shares bytes with these; NULL if there is none. */
static struct range *overlapping(uintptr_t begin, uintptr_t end) {
    for (size_t i = 0; i < newcomer_count; i++)
        if (newcomers[i].begin < end && newcomers[i].end > begin)
            return &newcomers[i];
    for (size_t i = search(sorted, sorted_count, begin); i < sorted_count && sorted[i].begin < end;
         i++)
        if (sorted[i].kind != RANGE_NONE)
            return &sorted[i];
    return NULL;
}

static void remove_range(struct range *range) {
    begin_write();
    if (range >= newcomers && range < newcomers + NEWCOMERS) {
        set(range, newcomers[newcomer_count - 1]);
        store_relaxed(&newcomer_count, newcomer_count - 1);
    } else {
        store_relaxed(&range->kind, RANGE_NONE);
    }
    end_write();
}

void ranges_add(uintptr_t begin, size_t bytes, enum range_kind kind) {
    struct range *stale;
    ranges_change();
    while ((stale = overlapping(begin, begin + bytes)))
        remove_range(stale);
    if (incomplete)
        return;
    begin_write();
    if (newcomer_count == NEWCOMERS && !merge())
        incomplete = true;
    else {
        set(&newcomers[newcomer_count], (struct range){begin, begin + bytes, kind});
        store_relaxed(&newcomer_count, newcomer_count + 1);
    }
    end_write();
}

/* The range that begins there; NULL if none does. */
static struct range *range_at(uintptr_t begin) {
    for (size_t i = 0; i < newcomer_count; i++)
        if (newcomers[i].begin == begin)
            return &newcomers[i];
    const size_t at = search(sorted, sorted_count, begin);
    return at < sorted_count && sorted[at].begin == begin && sorted[at].kind != RANGE_NONE
               ? &sorted[at]
               : NULL;
}

void ranges_remove(uintptr_t begin) {
    struct range *range = range_at(begin);
    ranges_change();
    if (range)
        remove_range(range);
}

void *ranges_begin(const void *address, size_t bytes) {
    const struct range *range = overlapping((uintptr_t)address, (uintptr_t)address + bytes);
    return range ? (void *)range->begin : NULL;
}
