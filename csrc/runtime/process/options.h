/* The options of the environment: options.def's, as they were read and as they are meant. */
#ifndef MGPU_RT_OPTIONS_H
#define MGPU_RT_OPTIONS_H

#include "atomics.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The caches as MGPU_RT_CACHE and the statistics name them; staged copies are not counted. */
enum cache_kind {
    CACHE_MODULES,
    CACHE_FUNCTIONS,
    CACHE_STREAMS,
    CACHE_EVENTS,
    CACHE_MEMORY,
    CACHE_REGISTRATIONS,
    CACHE_COUNT,
    CACHE_STAGING = CACHE_COUNT,
    CACHE_NAMES
};
enum { ALL_CACHES = (1 << CACHE_NAMES) - 1 };

struct options {
#define OPTION(field, variable, default_value, meaning) const char *field;
#include "process/options.def"
#undef OPTION
    unsigned caches; /* a bit for each that is on; 0: stock's behaviour, call for call */
    bool verbose_on, exclusive_on;
    size_t module_limit_bytes;
    long stream_limit_count;
    char python[PATH_MAX];     /* interpreter of the manager; "": search */
    bool manager_off;          /* as is the manager of a set-uid program */
    long manager_delay_ms;     /* from the first call to the start of the manager; -1: at a limit */
    int device_number;         /* -1: none asked for */
    bool device_by_rank;       /* device_number is a rank, of which there may be more */
    size_t memory_limit_bytes; /* 0: the fraction counts */
    double memory_limit_fraction; /* of the device's memory */
    bool sync_lazy, trace_gpu_on, trace_markers_on, errors_fail;
};
extern struct options options;

/* Returns the bits of the caches that are on. The exit turns all off while other threads may be at
 * work.
 */
static inline unsigned caches_on(void) {
    return load_relaxed(&options.caches);
}

static inline bool cache_is_on(enum cache_kind cache) {
    return caches_on() >> cache & 1;
}

void options_read(struct options *out);

/* Returns a variable of other software that names a path (ROCM_PATH). Returns NULL if it is empty,
 * and in a program with rights that its caller lacks. */
const char *options_path_variable(const char *name);

#endif
