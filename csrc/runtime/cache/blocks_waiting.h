/* Blocks that were freed on one stream while others were at work on their device.
 *
 * Stock's hipFree waits for the whole device, and so forgives a free on a stream that does not come
 * after all work on the block. So what was freed like that serves again when every stream that was
 * at work at the free has passed it. On a device with one stream nothing here runs. */
#ifndef MGPU_RT_BLOCKS_WAITING_H
#define MGPU_RT_BLOCKS_WAITING_H

#include "cache/streams.h"
#include "cache/types.h"

/* Lists the other streams of the device that are at work. The caller has taken the block. Unknown:
 * there was no memory to list them. */
enum at_work { NONE_AT_WORK, SOME_AT_WORK, AT_WORK_UNKNOWN };
enum at_work block_list_at_work(struct block *block, const struct stream *stream);

/* Puts a block away for which SOME_AT_WORK was the answer. */
void block_put_waiting(struct block *block, struct stream *stream);

/* Takes one of this size that serves work in the order of `stream`, shared memory or the device's
 * own. NULL as `stream` stands for any order. NULL if there is no such block. May ask HIP about
 * streams that nobody holds. */
struct block *block_take_waiting(int device, size_t size, const struct stream *stream, bool shared);

/* True if so many wait that a free is to wait for the device as stock's does. */
bool block_waiting_is_full(int device);

/* Takes those that need not wait any more, a chain by next_spilled, for the pools. A thread that
 * looks for one of them meanwhile finds it a moment later. */
struct block *block_take_settled(int device);

/* Takes a block out that `waits`. Under tables_lock. */
void block_unlink_waiting(struct block *block);

#endif
