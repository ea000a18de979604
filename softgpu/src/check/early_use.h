/* Reports work on a block that is not ordered after the block's allocation. The program may have
 * freed the block's memory before, in the order of the allocation's stream. With the cache, the
 * work before the free may then still use the memory.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_EARLY_USE_H
#define SOFTGPU_CHECK_EARLY_USE_H

#include "order.h"

/* Notes that an op uses the block at an address. `alloc`: the op of the block's allocation, or 0.
 * `clock`: the ops that were over before the op began. For each place in the program that
 * allocates, the first such op without an order is reported. */
void softgpu_check_alloc(uint32_t alloc, uint32_t op, const struct softgpu_clock *clock,
                         uint64_t va);

#endif
