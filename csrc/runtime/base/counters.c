#include "base/counters.h"
#include "base/atomics.h"
#include "base/trace.h"

#include <string.h>
#include <time.h>

struct counter stats_of_abi[ABI_COUNT], stats_of_hip[HIP_COUNT];
struct cache_counter stats_of_caches[CACHE_COUNT];

const char *const abi_names[] = {
#define MGPU_FN(result, name, params, args, first, last) #name,
#define MGPU_VOID(name, params, args, first, last) #name,
#include "../../abi.def"
#undef MGPU_FN
#undef MGPU_VOID
};

const char *const hip_names[] = {
#define HIP_FN(need, name, params, args) "hip" #name,
#include "base/hip.def"
#undef HIP_FN
};

uint64_t stats_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void count_call(struct counter *counter, uint64_t nanoseconds) {
    fetch_add_relaxed(&counter->calls, 1);
    fetch_add_relaxed(&counter->nanoseconds, nanoseconds);
}

void stats_abi_call(enum abi_index function, uint64_t begin) {
    const uint64_t nanoseconds = stats_now() - begin;
    count_call(&stats_of_abi[function], nanoseconds);
    if (options.trace[0])
        trace_call(abi_names[function], "program", begin, nanoseconds);
}

void stats_hip_call(enum hip_index function, uint64_t nanoseconds) {
    count_call(&stats_of_hip[function], nanoseconds);
    if (options.trace[0])
        trace_call(hip_names[function], "driver", stats_now() - nanoseconds, nanoseconds);
}

void stats_miss(enum cache cache) {
    fetch_add_relaxed(&stats_of_caches[cache].misses, 1);
}
void stats_eviction(enum cache cache) {
    fetch_add_relaxed(&stats_of_caches[cache].evictions, 1);
}
void stats_bypass(enum cache cache) {
    fetch_add_relaxed(&stats_of_caches[cache].bypasses, 1);
}

void stats_reset(void) {
    memset(stats_of_abi, 0, sizeof stats_of_abi);
    memset(stats_of_hip, 0, sizeof stats_of_hip);
    memset(stats_of_caches, 0, sizeof stats_of_caches);
    trace_reset();
}
