/* Asks HIP for new blocks. */
#ifndef MGPU_RT_BLOCK_REQUESTS_H
#define MGPU_RT_BLOCK_REQUESTS_H

#include "mgpu.h"

/* Asks HIP for a block for a request of `bytes` bytes, and inserts it into the table, held by the
 * program. If HIP has no memory, idle blocks leave first, unless the request exceeds the device's
 * memory. `waits` is what block_search_pools returned. Returns NULL if HIP has no memory; *error is
 * HIP's answer. */
void *block_request(size_t bytes, int device, bool shared, bool waits, hipError_t *error);

#endif
