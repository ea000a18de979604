/* How much the caches may hold. */
#ifndef MGPU_RT_LIMITS_H
#define MGPU_RT_LIMITS_H

#include "process/state.h"

#include <stddef.h>

/* The most that the caches may hold beyond what the program holds. They keep to it by themselves,
 * least recently used first, with or without a manager. Set from MGPU_RT_*_LIMIT, and by the
 * manager. */
struct cache_limits {
    _Atomic size_t module_bytes; /* what idle modules cost */
    _Atomic size_t streams;      /* streams that the program does not hold */
    _Atomic size_t
        memory_bytes[MOST_DEVICES]; /* freed, and cached; by device; 0: not asked for yet */
};
extern struct cache_limits cache_limits;

/* Why a free takes the careful way: one test on the way of a hit. */
enum {
    CARE_SEVERAL_STREAMS = 1,
    CARE_OVER_LIMIT = 2,
};
extern unsigned care_of_frees;

/* As the options say. */
void limits_set(void);

#endif
