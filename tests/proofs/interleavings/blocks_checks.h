/* What must hold of blocks and their lists: `check` after each step of a thread, `check_between`
 * while no thread is inside a call. For blocks.c, which includes the sources of the pools. */
#ifndef BLOCKS_CHECKS_H
#define BLOCKS_CHECKS_H

#include "program.h"

/* Counts how often a list contains an entry. */
static unsigned count_in_list(const struct queue *list, const struct queued *entry) {
    unsigned count = 0;
    for (const struct queued *at = list->newest; at; at = at->older) {
        count += at == entry;
        explore_require(at->queue == list && *(at->newer ? &at->newer->older : &list->newest) == at,
                        "a list links its entries both ways");
    }
    return count;
}

static unsigned places_in(struct block_pool *pool, const struct block *block) {
    const size_t set = block_set(block->size);
    unsigned count = 0;
    for (int way = 0; way < POOL_WAYS; way++)
        count += pool->ways[set][way] == block;
    return count + count_in_list(list_in(pool, block->size), &block->listed);
}

static unsigned places(const struct block *block) {
    unsigned count = block->loose;
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        for (struct block_pool *pool = stream->pools; pool; pool = pool->next_of_owner)
            count += places_in(pool, block);
    return count;
}

/* Checks a block that is in a list of a pool. */
static void check_list(const struct block *block) {
    explore_require(count_in_list(block->listed.queue, &block->listed) == 1,
                    "a block is once in its list");
    explore_require(block->state < BLOCK_GRAPH_OWNED, "nobody holds a block of a list");
}

static void check_index(const struct block *block) {
    const bool is_indexed = block->indexed.queue != NULL;
    explore_require(count_in_list(list_of(0, block->shared, list_of_size(block->size)),
                                  &block->indexed) == is_indexed,
                    "a block of the index is in the list of its size");
    explore_require(count_in_list(&device_lists[0], &block->on_device) == is_indexed,
                    "a block of the index is in the list of its device");
    explore_require(!block->loose || block->state < BLOCK_GRAPH_OWNED,
                    "nobody holds a loose block");
    explore_require(!block->shared || is_indexed == block->loose,
                    "managed memory is in the index only while it is idle");
}

static void check_lists(void) {
    size_t small = 0;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        if (block->listed.queue)
            check_list(block);
        check_index(block);
        small += block->indexed.queue ? small_size(block) : 0;
    }
    explore_require(small == block_pool_small_bytes[0],
                    "the bytes of small blocks in the index are counted");
}

static void check(void) {
    size_t known = 0;
    model_check_numbers();
    if (explore_held(&tables_lock))
        return;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        known += block->booked ? block->size : 0;
        explore_require(world.forgot || block->booked == (block->state != BLOCK_GONE),
                        "all that HIP has not back is in the account");
        explore_require(world.forgot || places(block) <= (block->state == BLOCK_IDLE),
                        "a block lies in one place, and only while it is idle");
    }
    explore_require(known == block_reserved(0), "the account is the sum of what it has");
    check_lists();
}

static void check_between(void) {
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        const bool gone = block->state == BLOCK_GONE;
        if (world.forgot)
            continue;
        explore_require(program_holds(block->handle.key) == block_held_by_program(block),
                        "the program holds it if and only if its state says so");
        explore_require(block->state != BLOCK_IDLE || places(block) == 1,
                        "who looks for an idle block can find it");
        explore_require(block->state != BLOCK_IDLE || block->indexed.queue,
                        "work on any stream can find an idle block");
        explore_require(gone != model_block_is_alive(block->handle.key),
                        "HIP has back what is gone, and only that");
    }
}

#endif
