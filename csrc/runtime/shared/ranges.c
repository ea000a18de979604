/* A treap: a binary search tree by address that is also a heap by the address's hash. The tree's
 * depth is therefore logarithmic for any order of addresses. Most addresses that a program passes
 * are the beginning of a range, and a table by the beginning's hash finds these ranges at once.
 * Each node of the tree is part of the entry for a block or for registered memory. Entries are
 * never freed, so the tree allocates nothing, and readers may traverse the tree without a lock. A
 * sequence number shows readers whether the tree was written during their search. */
#include "shared/ranges.h"
#include "process/state.h"
#include "shared/handles.h"

enum {
    BUCKET_BITS = 16,
    FEW = 8, /* among few ranges, the tree finds a range sooner than the table */
    ATTEMPTS = 4,
    STEPS = 64 /* a reader checks the sequence number after this many steps */
};

static struct range *root; /* no two ranges share bytes */
static struct range *buckets[1 << BUCKET_BITS];
static size_t count;
static uint64_t sequence; /* odd while the tree is being written */
uint64_t ranges_changes;

static void begin_write(void) {
    store_relaxed(&sequence, sequence + 1);
    fence_seq_cst();
}

static void end_write(void) {
    store_release(&sequence, sequence + 1);
}

static struct range **bucket_of(uintptr_t begin) {
    return &buckets[handle_hash(begin) >> (64 - BUCKET_BITS)];
}

/* ---- looking ---- */

/* Returns the range that begins at an address; NULL if there is none. */
static struct range *beginning_at(uintptr_t begin, uint64_t now) {
    struct range *range = load_acquire(bucket_of(begin));
    for (unsigned steps = 1; range && load_relaxed(&range->begin) != begin; steps++) {
        range = load_acquire(&range->next_alike);
        if (steps % STEPS == 0 && load_relaxed(&sequence) != now)
            return NULL;
    }
    return range;
}

/* Returns the last range that begins before an address. */
static struct range *last_before(uintptr_t end, uint64_t now) {
    struct range *found = NULL, *range = load_acquire(&root);
    for (unsigned steps = 1; range; steps++) {
        if (load_relaxed(&range->begin) < end) {
            found = range;
            range = load_acquire(&range->right);
        } else {
            range = load_acquire(&range->left);
        }
        if (steps % STEPS == 0 && load_relaxed(&sequence) != now)
            break;
    }
    return found;
}

enum range_kind ranges_find(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address, end = begin + bytes;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const uint64_t before = load_acquire(&sequence);
        enum range_kind kind = RANGE_NONE;
        if (before & 1)
            continue;
        const struct range *range =
            bytes && load_relaxed(&count) > FEW ? beginning_at(begin, before) : NULL;
        if (!range)
            range = last_before(end, before);
        if (range && load_relaxed(&range->end) > begin)
            kind = load_relaxed(&range->begin) <= begin && end <= load_relaxed(&range->used_end)
                       ? (enum range_kind)load_relaxed(&range->kind)
                       : RANGE_MIXED;
        fence_acquire();
        if (load_relaxed(&sequence) == before)
            return kind;
    }
    return RANGE_MIXED;
}

size_t ranges_past(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const uint64_t before = load_acquire(&sequence);
        size_t past = bytes;
        if (before & 1)
            continue;
        const struct range *range = last_before(begin + 1, before);
        if (range && begin < load_relaxed(&range->end) &&
            begin + bytes <= load_relaxed(&range->end) &&
            begin + bytes > load_relaxed(&range->used_end))
            past = load_relaxed(&range->end) - begin + 1;
        fence_acquire();
        if (load_relaxed(&sequence) == before)
            return past;
    }
    return bytes;
}

/* ---- changing ---- */

static uint64_t height(const struct range *range) {
    return range->begin * UINT64_C(0x9E3779B97F4A7C15);
}

/* Replaces the first node of lower height on the search path by the new range. Splits that node's
 * subtree into the left and the right subtree of the new range. */
static void insert(struct range *fresh) {
    struct range **link = &root;
    while (*link && height(*link) >= height(fresh))
        link = (*link)->begin < fresh->begin ? &(*link)->right : &(*link)->left;
    struct range *rest = *link, **left = &fresh->left, **right = &fresh->right;
    store_release(link, fresh);
    while (rest) {
        const bool before = rest->begin < fresh->begin;
        store_release(before ? left : right, rest);
        *(before ? &left : &right) = before ? &rest->right : &rest->left;
        rest = before ? rest->right : rest->left;
    }
    store_release(left, NULL);
    store_release(right, NULL);
}

/* Removes the range at *link, and joins the range's two subtrees into one subtree at *link. In the
 * joined subtree, no node is higher than its parent. */
static void lift_below(struct range **link) {
    struct range *left = (*link)->left, *right = (*link)->right;
    while (left && right) {
        const bool is_left = height(left) >= height(right);
        struct range *higher = is_left ? left : right;
        store_release(link, higher);
        link = is_left ? &higher->right : &higher->left;
        *(is_left ? &left : &right) = *link;
    }
    store_release(link, left ? left : right);
}

static void remove_range(const struct range *range) {
    struct range **link = &root, **alike = range->bucket;
    while (*link != range)
        link = (*link)->begin < range->begin ? &(*link)->right : &(*link)->left;
    while (*alike != range)
        alike = &(*alike)->next_alike;
    begin_write();
    lift_below(link);
    store_release(alike, range->next_alike);
    store_relaxed(&count, count - 1);
    end_write();
}

/* Returns a range that shares bytes with the given bytes; NULL if there is none. */
static struct range *overlapping(uintptr_t begin, uintptr_t end) {
    struct range *range = last_before(end, sequence);
    return range && range->end > begin ? range : NULL;
}

void ranges_add(struct range *range, uintptr_t begin, size_t bytes, enum range_kind kind) {
    const struct range *stale;
    ranges_change();
    while ((stale = overlapping(begin, begin + bytes)))
        remove_range(stale);
    if (!bytes)
        return;
    begin_write();
    store_relaxed(&range->begin, begin);
    store_relaxed(&range->end, begin + bytes);
    store_relaxed(&range->used_end, begin + bytes);
    store_relaxed(&range->kind, kind);
    insert(range);
    range->bucket = bucket_of(begin);
    store_relaxed(&range->next_alike, *range->bucket);
    store_release(range->bucket, range);
    store_relaxed(&count, count + 1);
    end_write();
}

void ranges_remove(uintptr_t begin) {
    const struct range *range = overlapping(begin, begin + 1);
    ranges_change();
    if (range && range->begin == begin)
        remove_range(range);
}

void *ranges_begin(const void *address, size_t bytes) {
    const struct range *range = overlapping((uintptr_t)address, (uintptr_t)address + bytes);
    return range ? (void *)range->begin : NULL;
}
