/* Tells how much host memory may stay registered on this machine. */
#ifndef MGPU_RT_PINNED_LIMIT_H
#define MGPU_RT_PINNED_LIMIT_H

#include <stddef.h>

/* Returns the limit that MGPU_RT_MEMORY_LIMIT names, in bytes or as a fraction of the machine's
 * memory. If pinned memory counts against RLIMIT_MEMLOCK, the result is at most half of
 * RLIMIT_MEMLOCK. The answer is valid only after HIP has registered memory. */
size_t most_pinned_bytes(void);

#endif
