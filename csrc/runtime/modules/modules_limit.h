/* Which modules leave: those that nobody holds, the least recently used first. */
#ifndef MGPU_RT_MODULES_LIMIT_H
#define MGPU_RT_MODULES_LIMIT_H

#include <stdint.h>

struct cache;

/* After a miss for an image of this hash: unloads what is beyond the limit. An image that leaves
 * for the limit and comes back soon counts against the limit. If the limit costs a load again and
 * again, the library doubles it, and says so once. */
void module_enforce_limit(uint64_t missed);

/* A pinned module is not evicted by a limit, only by the manager and mgpu_rt_empty_cache. */
void module_pin(void *handle, int pinned);

/* MGPU_RT_EXCLUSIVE has ended: no module of an image with constants is shared from here on. Unloads
 * the idle ones. */
void module_unshare_constants(void);

extern const struct cache module_cache;

#endif
