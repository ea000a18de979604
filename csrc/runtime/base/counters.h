/* Counts and times of the program's calls and of the driver's; statistics.c shows them. */
#ifndef MGPU_RT_COUNTERS_H
#define MGPU_RT_COUNTERS_H

#include "base/abi.h"
#include "base/options.h"

#include <stdbool.h>
#include <stdint.h>

/* One index a function of HIP's, in the order of hip.def. */
enum hip_index {
#define HIP_FN(need, name, params, args) HIP_##name,
#include "base/hip.def"
#undef HIP_FN
    HIP_COUNT
};

enum cache {
    CACHE_MODULES,
    CACHE_FUNCTIONS,
    CACHE_STREAMS,
    CACHE_EVENTS,
    CACHE_MEMORY,
    CACHE_COUNT
};

/* MGPU_RT_STATS or MGPU_RT_TRACE asks for that. */
static inline bool stats_wanted(void) {
    return options.stats[0] || options.trace[0];
}

uint64_t stats_now(void); /* ns, CLOCK_MONOTONIC */
void stats_abi_call(enum abi_index function, uint64_t begin);
void stats_hip_call(enum hip_index function, uint64_t nanoseconds);
void stats_miss(enum cache cache);
void stats_eviction(enum cache cache);
/* A call that a cache did not serve and did not count as a miss: it is no hit either. */
void stats_bypass(enum cache cache);

/* A child of fork counts from 0. */
void stats_reset(void);

/* ---- what was counted ---- */

struct counter {
    uint64_t calls, nanoseconds;
};
struct cache_counter {
    uint64_t misses, evictions, bypasses;
};
extern struct counter stats_of_abi[ABI_COUNT], stats_of_hip[HIP_COUNT];
extern struct cache_counter stats_of_caches[CACHE_COUNT];
extern const char *const abi_names[ABI_COUNT], *const hip_names[HIP_COUNT];

#endif
