/* Tells the statistics why HIP had to allocate a block. */
#ifndef MGPU_RT_MISS_REASON_H
#define MGPU_RT_MISS_REASON_H

#include <stdbool.h>
#include <stddef.h>

struct block;

/* Counts the reason why no cached block served an allocation of this size. `newest` is the newest
 * entry of the table of blocks. `waits`: a cached block of this size waits for a stream. Does
 * nothing unless statistics are requested. */
void block_tell_miss(const struct block *newest, size_t size, int device, bool waits);

#endif
