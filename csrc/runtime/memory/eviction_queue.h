/* Orders the blocks of a device by their last free, for eviction.
 *
 * A hit takes a block from a pool and puts the block back without a lock, so a queue cannot follow
 * each hit. A block therefore keeps the age that it had when it entered the queue. The block that
 * leaves the queue first may have a newer age by now, or the program may hold it. The caller then
 * puts the block back, or waits for the block's next free. Each such detour is paid by one earlier
 * free, so a take costs O(log n) on average. All functions need tables_lock. */
#ifndef MGPU_RT_EVICTION_QUEUE_H
#define MGPU_RT_EVICTION_QUEUE_H

#include "shared/types.h"

/* Each device has two queues: for blocks up to BLOCK_EXACT_UP_TO bytes, and for larger blocks. */
enum eviction_queue { QUEUE_SMALL, QUEUE_LARGE, QUEUES };

static inline enum eviction_queue eviction_queue_of(const struct block *block) {
    return block->size > BLOCK_EXACT_UP_TO ? QUEUE_LARGE : QUEUE_SMALL;
}

/* Returns a block's age. The age orders blocks by the time of the last free, and then by the number
 * of uses. */
uint64_t eviction_age(const struct block *block);

/* Puts a block into its queue, unless the block is in the queue. */
void eviction_queue_put(struct block *block);

/* Returns the block with the lowest age, or NULL. The block stays in the queue. */
struct block *eviction_queue_first(int device, enum eviction_queue queue);

/* Removes the block that eviction_queue_first returns. */
void eviction_queue_remove_first(int device, enum eviction_queue queue);

/* Returns the sizes of the blocks in the queue of small blocks, an upper bound of the idle ones.
 * Needs no lock. */
size_t eviction_queue_small_bytes(int device);

#endif
