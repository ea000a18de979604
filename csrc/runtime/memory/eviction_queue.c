/* A pairing heap for each device, and a list of the blocks that will enter the heap. Each node is
 * part of a block's entry, so both allocate nothing. */
#include "memory/eviction_queue.h"
#include "memory/block.h"

enum { USES_BITS = 8, MOST_USES = (1 << USES_BITS) - 1 };

static struct block *heaps[MOST_DEVICES];
static struct block *entering[MOST_DEVICES]; /* linked by next_sibling; any thread adds blocks */
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
    const int device = block_device(block);
    bool queued = false;
    const size_t size = block_size(block);
    if (!cas_acq_rel(&block->queued, &queued, true))
        return;
    store_relaxed(&block->age, eviction_age(block));
    block->small_bytes = size > BLOCK_EXACT_UP_TO ? 0 : size;
    fetch_add_relaxed(&small_bytes[device], block->small_bytes);
    struct block *first = load_relaxed(&entering[device]);
    do
        block->next_sibling = first;
    while (!cas_acq_rel(&entering[device], &first, block));
}

/* Moves the blocks of the list into the heap, in the order in which they were added. */
static void enter_heap(int device) {
    struct block *added = exchange_acq_rel(&entering[device], NULL), *block = NULL;
    while (added) { /* the list begins with the last one */
        struct block *const earlier = added->next_sibling;
        added->next_sibling = block;
        block = added;
        added = earlier;
    }
    while (block) {
        struct block *const later = block->next_sibling;
        block->first_younger = block->next_sibling = NULL;
        heaps[device] = merge(heaps[device], block);
        block = later;
    }
}

struct block *eviction_queue_take(int device) {
    enter_heap(device);
    struct block *const first = heaps[device];
    if (!first)
        return NULL;
    heaps[device] = merge_children(first->first_younger);
    fetch_sub_relaxed(&small_bytes[device], first->small_bytes);
    store_release(&first->queued, false);
    return first;
}

size_t eviction_queue_small_bytes(int device) {
    return load_relaxed(&small_bytes[device]);
}
