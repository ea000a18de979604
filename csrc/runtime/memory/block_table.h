/* The table of all blocks, and a device's accounts: the bytes that HIP has allocated for blocks,
 * and the bytes for which the program asked. */
#ifndef MGPU_RT_BLOCK_TABLE_H
#define MGPU_RT_BLOCK_TABLE_H

#include "memory/block.h"
#include "shared/thread.h"
#include "telemetry/counters.h"

/* ---- entries ---- */

extern struct handle_map block_map;

/* Returns the entry of an address, or NULL. Lock-free. */
struct block *block_find(const void *address);
/* Returns the block that contains an address, unless the block is GONE. */
struct block *block_around(const void *address);

/* Returns the newest entry; handle_next returns the next older entry. */
struct block *block_first(void);

/* Adds memory of `size` bytes that HIP has just allocated for a request of `bytes` bytes. The state
 * is LIVE or GRAPH for memory of hipMalloc, and SHARED for memory of hipMallocManaged. Returns NULL
 * if there is no memory for the entry. */
struct block *block_insert(void *address, size_t size, size_t bytes, int device, int state);

/* Removes a block from the table; the block must be in no pool. HIP may hand the address to another
 * thread at once, so a block leaves the table before HIP frees it. Under tables_lock. */
void block_remove(struct block *block);

/* Calls HIP to free an address; `block` is the block at that address, or NULL, and must not be in a
 * pool. Returns HIP's answer. */
hipError_t block_free_by_hip(struct block *block, void *address);

/* Removes a block from the table when the process exits. The device's account keeps the block,
 * because it leaves neither the program nor HIP. Only a block that the program holds stays booked:
 * the program may free it later. Under tables_lock. */
void block_remove_at_exit(struct block *block);

/* Takes a block out of the account if the program held the block at the exit, and frees it now.
 * Returns false if there is no such block. */
bool block_free_late(struct block *block);

/* Asks HIP for the number of a new block's allocation, if block_is_still_there needs the number:
 * for managed memory, and on a machine with several devices. */
void block_ask_number(struct block *block);

/* Returns true if nobody but the library has freed the block. Asks HIP only if other code may have
 * called HIP since the last question. */
bool block_is_still_there(const struct block *block);

/* ---- the bytes for which the program asked ---- */

/* True once the program held a block that is larger than its request. */
extern bool blocks_have_slack;

/* Records the bytes for which the program asked, in a large block that the caller owns. */
void block_ask_large(struct block *block, size_t bytes);

/* Records the bytes for which the program asked, in a block of any size. Blocks up to
 * BLOCK_EXACT_UP_TO are not counted. */
static inline void block_ask(struct block *block, size_t bytes) {
    if (UNLIKELY(block->size > BLOCK_EXACT_UP_TO))
        block_ask_large(block, bytes);
}

/* Subtracts the bytes of a block that the program no longer holds. */
void block_unask(const struct block *block);

/* Returns how many bytes HIP must get to answer as with a block of exactly the requested size. If
 * `bytes` lead beyond the request, the result leads beyond the block. */
size_t block_past_slack(const void *address, size_t bytes);
static inline size_t block_past(const void *address, size_t bytes) {
    return LIKELY(!load_relaxed(&blocks_have_slack)) ? bytes : block_past_slack(address, bytes);
}

/* ---- accounts ---- */

/* Returns how many bytes HIP has allocated for the library's blocks on a device. */
static inline size_t block_reserved(int device) {
    return load_relaxed(&counts.memory[device].reserved);
}

/* The reserved bytes of a device in blocks above BLOCK_EXACT_UP_TO. Threads write them under
 * tables_lock. */
extern size_t block_large_bytes[MOST_DEVICES];

/* Counts the blocks and bytes that the program holds; visits all blocks. */
void block_count_held(struct memory_account accounts[MOST_DEVICES]);

/* Returns the bytes of large blocks for which the program has asked and which it holds. Under
 * tables_lock. */
size_t block_asked_bytes(int device);

/* Returns the further bytes of the large blocks that the program holds. Under tables_lock. */
size_t block_beyond_bytes(int device);

/* Returns the bytes of large blocks for which the program has not asked: idle blocks, and the part
 * of a held block beyond the request. Under tables_lock. */
size_t block_large_unused(int device);

/* Keeps the count of a thread that ends. Under tables_lock. */
void block_thread_ends(struct thread *thread);

#endif
