/* Decides which idle blocks return to HIP. The functions take tables_lock and may call hipFree,
 * which waits for the device. */
#ifndef MGPU_RT_EVICTION_H
#define MGPU_RT_EVICTION_H

#include "shared/types.h"

/* Enforces the bounds after the program has freed a block, which is now in a pool. */
void eviction_after_free(struct block *block, int device);

/* Records that HIP has allocated a block of this size. If a bound is exceeded, the frees evict
 * blocks from now on. If a cached block of the size `waits` for a stream, the program needs both
 * blocks in turn, so the recent peak includes both. */
void eviction_after_new(int device, size_t size, bool waits);

/* Evicts the least recently used idle blocks of a device, until HIP has freed `bytes` bytes.
 * Returns the bytes that HIP has freed. */
size_t eviction_of_bytes(int device, size_t bytes);

/* Evicts all idle blocks of a device, or of ALL_DEVICES. Returns the number of blocks. */
int eviction_of_all(int device);

/* Evicts the block at an address. Returns hipErrorNotFound if there is none, hipErrorNotReady if
 * the block is in use or hipFree would wait, and otherwise HIP's answer. */
hipError_t eviction_of_block(void *address);

/* Returns the bytes of a device's memory; 0 if HIP was not asked yet. */
size_t eviction_total(int device);

#endif
