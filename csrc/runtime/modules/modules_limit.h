/* Evicts modules that no thread holds, least recently used first. */
#ifndef MGPU_RT_MODULES_LIMIT_H
#define MGPU_RT_MODULES_LIMIT_H

struct cache;

/* Unloads idle modules if all modules cost more than the limit. The library calls this function
 * after a miss. */
void module_enforce_limit(void);

/* Pins or unpins a module. The library does not evict a pinned module at a limit, but the manager
 * and mgpu_rt_empty_cache can evict the module. */
void module_pin(void *handle, int pinned);

extern const struct cache module_cache;

#endif
