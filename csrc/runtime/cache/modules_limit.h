/* Which modules leave: those that nobody holds, the least recently used first. */
#ifndef MGPU_RT_MODULES_LIMIT_H
#define MGPU_RT_MODULES_LIMIT_H

#include <stdint.h>

/* After a miss for an image of this hash: unloads what is beyond the limit (manage.h). An image
 * that was unloaded for the limit and comes back soon counts against the limit: where keeping to it
 * costs a load again and again, it doubles, and says so once. */
void evict_modules(uint64_t missed);

/* Unloads all modules of a device that nobody holds, as stock has done already where the program
 * did; returns how many. May wait for work. */
int evict_all_modules(int device);

#endif
