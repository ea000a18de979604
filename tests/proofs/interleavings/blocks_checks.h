/* What must hold of blocks and their lists: `check` after each step of a thread, `check_between`
 * while no thread is inside a call. For blocks.c, which includes the sources of the pools. */
#ifndef BLOCKS_CHECKS_H
#define BLOCKS_CHECKS_H

#include "program.h"

static unsigned places_in(const struct block_pool *pool, const struct block *block) {
    const size_t set = block_set(block->size);
    unsigned count = 0;
    for (int way = 0; way < POOL_WAYS; way++)
        count += pool->ways[set][way] == block;
    const struct block *const newest = newest_of(pool, list_of(block)), *one = newest;
    do
        count += one == block;
    while (one && (one = one->older) != newest);
    return count;
}

static unsigned places(const struct block *block) {
    unsigned count = places_in(&device_pools[0], block) + places_in(&shared_pools[0], block);
    for (const struct block_pool *pool = stream_pools; pool; pool = pool->next)
        count += places_in(pool, block);
    return count;
}

/* Checks the ring in which a block lies. */
static void check_list(const struct block *block) {
    const struct block_pool *const pool = block->pool;
    const size_t list = list_of(block);
    explore_require(next_filled(pool, list) == list, "a list with blocks is marked");
    explore_require(places_in(pool, block) == 1, "a block is in the list of its size");
    explore_require(block->older->newer == block && block->newer->older == block,
                    "a list is a ring");
    explore_require(block->state < BLOCK_GRAPH_OWNED, "nobody holds a block of a list");
}

/* Checks the marks of the lists with blocks, and returns how many there are. */
static unsigned check_marks(const struct block_pool *pool) {
    unsigned marks = 0;
    for (size_t list = 0; (list = next_filled(pool, list)) < POOL_LISTS; list++, marks++)
        explore_require(newest_of(pool, list) != NULL, "a marked list has blocks");
    return marks;
}

static void check_lists(void) {
    size_t listed = 0;
    unsigned marks = check_marks(&device_pools[0]) + check_marks(&shared_pools[0]);
    for (const struct block_pool *pool = stream_pools; pool; pool = pool->next)
        marks += check_marks(pool);
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next)
        if (block->pool) {
            check_list(block);
            listed++;
        }
    explore_require(marks <= listed, "no list contains a block that is elsewhere");
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
        explore_require(gone != model_block_is_alive(block->handle.key),
                        "HIP has back what is gone, and only that");
    }
}

#endif
