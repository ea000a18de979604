/* What the parts of the runtime share: state, options, messages, the clock. */
#ifndef MGPU_RT_RUNTIME_H
#define MGPU_RT_RUNTIME_H

#include "base/abi.h"
#include "base/atomics.h"
#include "hip/hip.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- state -------------------------------------------------------------------------------- */

/* 0 while calls take the fast path; any bit sends each call through the slow entry (entry.c). */
enum {
    MODE_UNSTARTED = 1, /* the options were not read, HIP was not looked for */
    MODE_TIMED = 2,     /* MGPU_RT_STATS: each call is timed */
    MODE_EXITING = 4,   /* the exit handler ran: nothing is cached any more */
    MODE_LATE = 8,      /* so did what HIP registered since it was first called */
    MODE_OVER = 16,     /* and what HIP registered when it was opened: HIP is no more */
};
extern unsigned runtime_mode;

/* Reads the options and opens HIP, once. No thread ever waits in here for another one: a thread
 * that holds the loader's lock (a constructor under dlopen) and one that wants it could block each
 * other for ever. */
void runtime_start(void);

/* Asks for the exit handler to run before whatever HIP has registered so far. Called again after
 * each first use of a part of HIP: exit handlers run last in, first out. */
void runtime_register_exit(void);

/* Gives back to HIP what is cached; returns how many things. Whatever then wants memory from HIP
 * may have it. */
int runtime_give_back(void);

/* From here on nothing that HIP has handed out is known: somebody has reset the device, or HIP
 * ends. Every call goes to HIP as stock's would, until the caches have filled anew. */
void runtime_forget_all(void);

/* RETRY(call): HIP's call that may want memory; if there is none, once more after what is cached
 * was given back. */
#define RETRY(call)                                                                                \
    __extension__({                                                                                \
        hipError_t answer_ = (call);                                                               \
        if (UNLIKELY(answer_ == hipErrorOutOfMemory) && runtime_make_room())                       \
            answer_ = (call);                                                                      \
        answer_;                                                                                   \
    })

/* True if the call is to be tried once more. */
bool runtime_make_room(void);

/* True after the exit handlers ran: what is still held is the operating system's to clean up. */
static inline bool runtime_exiting(void) {
    return (load_relaxed(&runtime_mode) & MODE_EXITING) != 0;
}

static inline bool runtime_is(unsigned mode) {
    return (load_relaxed(&runtime_mode) & mode) != 0;
}

/* True if a handle that the tables knew need not be given back any more: the process ends, and what
 * HIP registered at its first call is gone, so that it may not bear it (llvm #190563). */
static inline bool runtime_leaves(const void *known) {
    return known != NULL && runtime_is(MODE_LATE);
}

/* True while every call is counted and timed. */
static inline bool runtime_counting(void) {
    return (load_relaxed(&runtime_mode) & MODE_TIMED) != 0;
}

/* True in a child of fork. HIP does not survive a fork, and an interpreter that we started may have
 * been busy in a thread that the child does not have. */
extern bool runtime_forked;

/* ---- options ------------------------------------------------------------------------------ */

struct options {
#define OPTION(field, variable, default_value, meaning) const char *field;
#include "base/options.def"
#undef OPTION
    bool cache_on, verbose_on, exclusive_on;
    size_t module_limit_bytes;
    long stream_limit_count, python_delay_ms;
    int device_number;            /* -1: none asked for */
    size_t memory_limit_bytes;    /* 0: the fraction counts */
    double memory_limit_fraction; /* of the device's memory */
    bool sync_lazy;
};
extern struct options options;

void options_read(struct options *out);
/* What opening HIP asks for, before the first call. */
void options_read_early(struct options *out);

/* A variable of others that names a path (ROCM_PATH). NULL if it is empty, and in a program with
 * rights that its caller lacks. */
const char *options_path_variable(const char *name);

/* ---- messages ----------------------------------------------------------------------------- */

/* Failures that follow from others: where the first was explained, they need no advice. */
enum consequence {
    NOTHING_RUNS = 1,
    NULL_MODULE = 2,
    NULL_FUNCTION = 4,
};

/* A cause of failure that is explained once. */
struct advice {
    const char *text; /* printf format */
    bool given;
    unsigned leads_to, follows; /* of enum consequence */
};

/* Prints stock's line, which tools look for, and then the advice if it was not given yet:
 *     'hipFree(ptr)' failed with 'hipErrorInvalidValue'
 *     mgpu_rt: ...
 * The words are passed to advice->text. advice may be NULL. No advice follows another that explains
 * it, nor one after which nothing runs. */
void report_failure(const char *expression, hipError_t error, struct advice *advice, ...);

/* That there is no device: report_failure takes it by itself where HIP has said so. */
extern struct advice report_no_device;

/* Gives only the advice, once: for what works, but not as the program thinks. */
void report_once(struct advice *advice, ...);

/* One line on stderr, prefixed; only with MGPU_RT_VERBOSE. */
void report_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* REPORT(expression, call, advice, words...): calls HIP as stock would, and reports a failure as
 * stock would. */
#define REPORT(expression, call, ...)                                                              \
    do {                                                                                           \
        const hipError_t error_ = (call);                                                          \
        if (UNLIKELY(error_ != hipSuccess))                                                        \
            report_failure(expression, error_, __VA_ARGS__);                                       \
    } while (0)

/* ---- statistics --------------------------------------------------------------------------- */

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

#endif
