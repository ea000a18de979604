/* Tells how much memory may stay registered and watched on this machine. */
#ifndef MGPU_RT_PINNED_LIMITS_H
#define MGPU_RT_PINNED_LIMITS_H

#include <stddef.h>

/* Returns how many ranges the library may watch. A watched range may split a mapping of the program
 * into three. The kernel limits the number of mappings of a process, and then refuses further
 * mappings. The result is so small that the ranges add at most a sixteenth of the limit. */
unsigned most_watched_ranges(void);

/* Returns the limit that MGPU_RT_MEMORY_LIMIT names, in bytes or as a fraction of the machine's
 * memory. If pinned memory counts against RLIMIT_MEMLOCK, the result is at most half of
 * RLIMIT_MEMLOCK. The answer is valid only after HIP has registered memory. */
size_t most_pinned_bytes(void);

#endif
