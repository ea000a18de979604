/* Pools of idle blocks, and an index of these blocks by size and device. Each stream has a pool for
 * each device, for the blocks that the program freed on the stream. The other idle blocks are only
 * in the index.
 *
 * A block keeps its fences while it is idle. A search returns a block only if each fence of the
 * block is done or belongs to the stream that gets the block. A function takes tables_lock itself,
 * unless its comment says that the caller holds the lock. */
#ifndef MGPU_RT_BLOCK_POOLS_H
#define MGPU_RT_BLOCK_POOLS_H

#include "check.h"
#include "memory/block.h"

/* Sets the fence on `stream` of a block that the caller owns. If `others` is true, sets a fence for
 * each other stream that has pending work on the device, too. Returns false if there is no memory
 * for the fences, or if too many blocks with several fences wait. The block must then not enter a
 * pool before the device is idle. */
bool block_set_fences(struct block *block, struct stream *stream, bool others);

/* Clears the fences of a block that the caller owns. */
void block_clear_fences(struct block *block);

/* Clears the fences of a block that the caller owns, after a wait for the block's device. The other
 * blocks of the device then no longer count as waiting. */
void block_device_is_idle(struct block *block);

/* Puts an idle block into its stream's pool, or only into the index; the block keeps its fences. */
void block_pool_put(struct block *block);

/* Removes the block from one slot of a pool, if the block has this size. The caller then owns the
 * block. Returns NULL if the slot has no block of this size. */
static inline struct block *block_pool_take_way(struct block **way, size_t size) {
    struct block *block = load_acquire(way);
    if (!block || block_size(block) != size || !cas_acq_rel(way, &block, NULL))
        return NULL;
    if (UNLIKELY(block->size != size)) { /* another thread has reused the entry for a block of
                                          * another size */
        block_pool_put(block);
        return NULL;
    }
    CHECK(load_relaxed(&block->state) == BLOCK_IDLE || load_relaxed(&block->state) == BLOCK_GONE);
    return block;
}

/* Removes a block of this size from a stream's pool. The stream's next work may use any block of
 * the pool. */
static inline struct block *block_pool_take_own(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    struct block *block = NULL;
    for (int way = 0; way < POOL_WAYS && !block; way++)
        block = block_pool_take_way(&ways[way], size);
    return block;
}

/* Takes an idle block out of its place, and then owns the block. Returns false if another thread is
 * moving the block. Under tables_lock. */
bool block_unlink(struct block *block);

/* Removes a block from the index, if it is there. Under tables_lock. */
void block_leave_index(struct block *block);

/* Returns the least recently used of 32 idle blocks of a device: of all, if they are fewer. Returns
 * NULL if the device has no idle block. The blocks that the program holds between these leave the
 * index. Under tables_lock. */
struct block *block_pool_oldest(int device);

/* An upper bound of the bytes of a device's idle blocks up to BLOCK_EXACT_UP_TO. The bound includes
 * blocks that the program holds again. Under tables_lock. */
extern size_t block_pool_small_bytes[MOST_DEVICES];

/* Returns false if the device has no idle block. Needs no lock. */
bool block_pool_may_be_idle(int device);

/* Removes blocks that the program holds from the index, up to the first idle one. After that
 * block_pool_may_be_idle returns false if no block is idle and the held ones were not many. */
void block_pool_remove_held(int device);

/* Takes a block of at least `bytes` bytes, and at most their class, that is ready for the next work
 * of `stream`. If `stream` is NULL, the block is ready for work on any stream. If `shared` is true,
 * the block is managed memory. May ask HIP twice whether a stream's work is done. Returns NULL if
 * no block is ready; *waits is true if a block of the size waits for a stream. */
struct block *block_search_pools(size_t bytes, int device, struct stream *stream, bool shared,
                                 bool *waits);

/* Takes a ready block above BLOCK_EXACT_UP_TO that is larger than `size`, but not much larger, and
 * by at most `room` bytes. Returns NULL if there is none. */
struct block *block_search_larger(size_t size, size_t room, int device, struct stream *stream,
                                  bool shared);

/* Allows requests of this size to take larger blocks again: HIP has allocated a block of the size.
 */
void block_expect_own(size_t size, int device);

/* Remembers the size of a block that HIP frees. An entry in the table forgets the size when HIP
 * uses its address again. Under tables_lock. */
void block_note_gone(const struct block *block);

/* Returns true if HIP has freed a block of this size, or a larger block that may serve the size. */
bool block_may_have_gone(size_t size, int device);

#endif
