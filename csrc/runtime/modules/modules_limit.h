/* Evicts modules that no thread holds, least recently used first. */
#ifndef MGPU_RT_MODULES_LIMIT_H
#define MGPU_RT_MODULES_LIMIT_H

#include <stdint.h>

struct cache;

/* Unloads idle modules if they exceed the limit, after a miss for an image of this hash. If
 * evictions at the limit repeatedly cause an image to be loaded again soon, the library doubles the
 * limit, and reports the new limit once. */
void module_enforce_limit(uint64_t missed);

/* Pins a module: no limit evicts the module, but the manager and mgpu_rt_empty_cache still can. */
void module_pin(void *handle, int pinned);

/* Stops the sharing of modules whose image has constants, and unloads those that are idle, because
 * MGPU_RT_EXCLUSIVE has ended. */
void module_unshare_constants(void);

extern const struct cache module_cache;

#endif
