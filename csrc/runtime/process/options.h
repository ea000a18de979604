/* The options that the environment sets: each option of options.def as text, and the values that
 * the library derives from these texts. */
#ifndef MGPU_RT_OPTIONS_H
#define MGPU_RT_OPTIONS_H

#include "atomics.h"

#include <limits.h>

/* The caches that MGPU_RT_CACHE names; the statistics count all of them except staging. */
enum cache_kind {
    CACHE_MODULES,
    CACHE_FUNCTIONS,
    CACHE_STREAMS,
    CACHE_MEMORY,
    CACHE_REGISTRATIONS,
    CACHE_COUNT,
    CACHE_STAGING = CACHE_COUNT,
    CACHE_NAMES
};
enum { ALL_CACHES = (1 << CACHE_NAMES) - 1 };
extern const char *const cache_names[CACHE_NAMES];

struct options {
#define OPTION(field, variable, default_value, meaning) const char *field;
#include "process/options.def"
    unsigned caches; /* a bit for each cache that is on; 0: stock's behaviour, call for call */
    bool verbose_on;
    bool exclusive_on; /* the user declares that no other code calls HIP */
    bool witness_on;   /* the library asks HIP to report calls of other code */
    size_t module_limit_bytes;
    long stream_limit_count;
    char python[PATH_MAX];     /* interpreter of the manager; "": search for one */
    bool manager_off;          /* the option turns the manager off, or the program is set-uid */
    long manager_delay_ms;     /* milliseconds between the first call and the manager's start; -1:
                                * the manager starts once a limit is reached */
    int device_number;         /* -1: no device requested */
    bool device_by_rank;       /* device_number is the process's rank on its machine, and may exceed
                                * the number of devices */
    size_t memory_limit_bytes; /* bytes; 0: memory_limit_fraction applies */
    double memory_limit_fraction; /* fraction of the device's memory */
    bool sync_lazy, trace_markers_on;
};
extern struct options options;

/* Returns the bits of the caches that are on. The exit handler clears these bits while other
 * threads may be running. */
static inline unsigned caches_on(void) {
    return load_relaxed(&options.caches);
}

static inline bool cache_is_on(enum cache_kind cache) {
    return caches_on() >> cache & 1;
}

/* Returns true if the user has declared that no other code calls HIP, and nothing has ended this
 * word. */
static inline bool exclusive_hip(void) {
    return load_relaxed(&options.exclusive_on);
}

/* Ends the user's word. The caller settles everything that rests on it (abi/exclusive_end.h). */
static inline void exclusive_stop(void) {
    store_seq_cst(&options.exclusive_on, false);
}

void options_read(struct options *out);

/* Returns the process's rank; -1 if no launcher has set a rank. */
int options_rank(void);

/* Returns whether MGPU_RT_VERBOSE is on, before options_read has read and checked the options. */
bool options_early_verbose(void);

/* Returns a variable of other software that contains a path (ROCM_PATH). Returns NULL if the
 * variable is empty, or the program has privileges that its caller lacks. */
const char *options_path_variable(const char *name);

#endif
