/* A pairing heap for each device. Each node is part of a block's entry, so the heap allocates
 * nothing. */
#include "memory/eviction_queue.h"

enum { USES_BITS = 8, MOST_USES = (1 << USES_BITS) - 1 };

static struct block *heaps[MOST_DEVICES];
static size_t small_bytes[MOST_DEVICES];

uint64_t eviction_age(const struct block *block) {
    const uint64_t uses = load_relaxed(&block->uses);
    return load_relaxed(&block->last_use) << USES_BITS |
           (uses < MOST_USES ? uses : (uint64_t)MOST_USES);
}

static struct block *merge(struct block *one, struct block *other) {
    if (!one || !other)
        return one ? one : other;
    struct block *const first = one->age <= other->age ? one : other;
    struct block *const second = first == one ? other : one;
    second->next_sibling = first->first_younger;
    first->first_younger = second;
    return first;
}

/* Merges the children of a removed root: first in pairs, then each pair into the heap. */
static struct block *merge_children(struct block *child) {
    struct block *pairs = NULL, *merged = NULL;
    while (child) {
        struct block *const other = child->next_sibling;
        struct block *const rest = other ? other->next_sibling : NULL;
        child->next_sibling = NULL;
        if (other)
            other->next_sibling = NULL;
        struct block *const pair = merge(child, other);
        pair->next_sibling = pairs;
        pairs = pair;
        child = rest;
    }
    while (pairs) {
        struct block *const rest = pairs->next_sibling;
        pairs->next_sibling = NULL;
        merged = merge(merged, pairs);
        pairs = rest;
    }
    return merged;
}

void eviction_queue_put(struct block *block) {
    const int device = block->device;
    if (block->queued)
        return;
    block->age = eviction_age(block);
    block->first_younger = block->next_sibling = NULL;
    store_relaxed(&block->queued, true);
    block->small_bytes = block->size > BLOCK_EXACT_UP_TO ? 0 : block->size;
    store_relaxed(&small_bytes[device], small_bytes[device] + block->small_bytes);
    heaps[device] = merge(heaps[device], block);
}

struct block *eviction_queue_take(int device) {
    struct block *const first = heaps[device];
    if (!first)
        return NULL;
    heaps[device] = merge_children(first->first_younger);
    store_relaxed(&first->queued, false);
    store_relaxed(&small_bytes[device], small_bytes[device] - first->small_bytes);
    return first;
}

size_t eviction_queue_small_bytes(int device) {
    return load_relaxed(&small_bytes[device]);
}
