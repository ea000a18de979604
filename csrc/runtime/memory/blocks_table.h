/* Which block an address is, and how much of a device's memory is held. */
#ifndef MGPU_RT_BLOCKS_TABLE_H
#define MGPU_RT_BLOCKS_TABLE_H

#include "memory/blocks_pool.h"
#include "shared/reset.h"
#include "shared/sites.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"

/* The entry of an address, or NULL. Lock-free. */
struct block *block_find(const void *address);

/* Enters memory that hipMalloc has returned, LIVE or GRAPH, or hipMallocManaged, SHARED. False
 * without memory for the entry. */
bool block_enter(void *address, size_t size, int device, int state);

/* Takes an idle block out, wherever it is; the caller then has HIP free it, and until then its
 * entry stays as it is. False if it is not idle. */
bool block_retire(struct block *block);

/* Has HIP free an address in a block that is in no pool, so nothing is known of the block any more.
 * Returns HIP's answer. */
hipError_t block_free_by_hip(struct block *block, void *address);

/* Notes the number that HIP has for shared memory: NVIDIA's driver does not say where it begins. */
void block_note_number(struct block *block);

/* Asks HIP whether it still has the block as it was handed out. The program may have freed it by a
 * call of its own, or have reset the device. */
bool block_confirm(const struct block *block);

/* All entries, newest first: handle_next leads on. */
struct block *block_first(void);

/* The block that an address lies in, begin included, if it is not GONE. */
struct block *block_around(const void *address);

/* From here on nothing is known of any block of a device: it was reset, or HIP ends. But managed
 * memory outlives the reset of one of several devices: what HIP still has of it stays. */
void block_forget_device(int device);

/* Tells that a block, if the program holds it, is the program's from this call on (1), or is not
 * any more (-1). */
static inline void block_tell(const struct block *block, int sign) {
    if (!block)
        return;
    const ptrdiff_t bytes = sign * (ptrdiff_t)block_size(block);
    call_tell_held(block_device(block), bytes);
    sites_count(block_address(block), block_device(block), bytes);
}

/* ---- accounts ---- */

/* Bytes held from HIP on a device, which the limit is about. */
size_t block_reserved(int device);

/* The ledger of a device: what is reserved, and the blocks. */
struct memory_account block_ledger(int device);
/* The same with what the program holds: looks at all blocks. */
struct memory_account block_account(int device);

#endif
