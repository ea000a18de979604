/* Orders the blocks of a device by their last free, for eviction.
 *
 * A hit takes a block from a pool and puts the block back without a lock, so a queue cannot follow
 * each hit. A block therefore keeps the age that it had when it entered the queue. The block that
 * leaves the queue first may have a newer age by now, or the program may hold it. The caller then
 * puts the block back, or waits for the block's next free. Each such detour is paid by one earlier
 * free, so a take costs O(log n) on average. A function needs tables_lock, unless its comment says
 * otherwise. */
#ifndef MGPU_RT_EVICTION_QUEUE_H
#define MGPU_RT_EVICTION_QUEUE_H

#include "shared/types.h"

/* Returns a block's age. The age orders blocks by the time of the last free, and then by the number
 * of uses. */
uint64_t eviction_age(const struct block *block);

/* Puts a block into its device's queue, unless the block is in the queue. Needs no lock. The caller
 * need not own the block. */
void eviction_queue_put(struct block *block);

/* Removes the block with the lowest age from a device's queue; returns NULL if the queue is empty.
 */
struct block *eviction_queue_take(int device);

/* Returns the sizes of the blocks up to BLOCK_EXACT_UP_TO bytes in a queue, an upper bound of the
 * idle ones.
 * Needs no lock. */
size_t eviction_queue_small_bytes(int device);

#endif
