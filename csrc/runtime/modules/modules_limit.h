/* Evicts modules that no thread holds, least recently used first. */
#ifndef MGPU_RT_MODULES_LIMIT_H
#define MGPU_RT_MODULES_LIMIT_H

#include <stdint.h>

struct cache;

/* Unloads idle modules if all modules cost more than the limit. The library calls this function
 * after a miss; `missed` is the hash of the loaded image. If the program often loads evicted images
 * again, the function doubles the limit, and the library reports the first doubling. */
void module_enforce_limit(uint64_t missed);

/* Pins or unpins a module. The library does not evict a pinned module at a limit, but the manager
 * and mgpu_rt_empty_cache can evict the module. */
void module_pin(void *handle, int pinned);

/* Ends the sharing of modules whose image has constants, and unloads these modules if they are
 * idle. The library calls this function when other code may call HIP (driver/exclusive.h). */
void module_unshare_constants(void);

extern const struct cache module_cache;

#endif
