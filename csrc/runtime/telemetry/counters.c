#include "telemetry/counters.h"
#include "telemetry/keys.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct counts counts;
__thread struct call call_now __attribute__((tls_model("initial-exec")));
__thread const void *call_site __attribute__((tls_model("initial-exec")));

const char *const abi_names[] = {
#define MGPU_FN(result, name, params, args, first, last, ...) #name,
#include "../../abi.def"
};

const char *const hip_names[] = {
#define HIP_FN(need, name, params, args) "hip" #name,
#include "driver/hip.def"
};

uint64_t clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void stats_call(struct counter *counter, uint64_t nanoseconds) {
    fetch_add_relaxed(&counter->calls, 1);
    fetch_add_relaxed(&counter->nanoseconds, nanoseconds);
}

void stats_miss(enum cache_kind cache) {
    fetch_add_relaxed(&counts.caches[cache].misses, 1);
    call_tell(CALL_MISS);
}

void stats_eviction(enum cache_kind cache) {
    fetch_add_relaxed(&counts.caches[cache].evictions, 1);
}

void stats_failure(enum abi_index function, hipError_t error) {
    bool fresh;
    const size_t row =
        key_enter(counts.failure_keys, FAILURES, failure_key(function, error), &fresh);
    if (row < FAILURES)
        fetch_add_relaxed(&counts.failures[row], 1);
}

/* Maps new pages for the counters. In a forked child, the old pages may belong to the parent's
 * file, or would have to be copied. The caches' account of memory is unchanged. */
void stats_reset(void) {
    struct memory_account memory[MOST_DEVICES];
    memcpy(memory, counts.memory, sizeof memory);
    void *fresh = mmap(&counts, sizeof counts, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (fresh != &counts)
        memset(&counts, 0, sizeof counts);
    memcpy(counts.memory, memory, sizeof memory);
}
