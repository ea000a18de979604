/* Counts and times the program's calls and the calls to HIP. Counts hits and misses of caches,
 * launches, copies, loads of modules, and device memory. telemetry/recording/ prints the
 * counters. */
#ifndef MGPU_RT_COUNTERS_H
#define MGPU_RT_COUNTERS_H

#include "process/options.h"
#include "process/state.h"
#include "telemetry/call.h"

/* The index of each function of HIP, in the order of hip.def. */
enum hip_index {
#define HIP_FN(need, name, params, args) HIP_##name,
#include "driver/hip.def"
    HIP_COUNT
};

/* The kind of a copy. The runtime's table of memory tells which addresses are device memory. */
enum copy_way {
    COPY_TO_DEVICE,   /* into a block of device memory, from any other memory */
    COPY_FROM_DEVICE, /* out of a block of device memory, into any other memory */
    COPY_ON_DEVICE,   /* between two places in blocks of device memory */
    COPY_UNKNOWN,     /* between two places outside blocks of device memory */
    COPY_FILL,        /* mgpuMemset */
    COPY_WAYS
};

/* Returns true if MGPU_RT_STATS or MGPU_RT_TRACE asks for counts. */
static inline bool stats_wanted(void) {
    return options.stats[0] || options.trace[0] || options.trace_markers_on;
}

struct counter;

uint64_t clock_ns(void); /* ns, CLOCK_MONOTONIC */
void stats_call(struct counter *counter, uint64_t nanoseconds);
/* Counts a miss, even if no statistics are requested. A miss is a call for which HIP creates an
 * object that the cache keeps. */
void stats_miss(enum cache_kind cache);
void stats_eviction(enum cache_kind cache);

/* Counts a failed call of the program. If the failure belongs to no function of the ABI, `function`
 * is ABI_COUNT. */
void stats_failure(enum abi_index function, hipError_t error);

/* Sets the counters of a forked child to 0, except the counters of device memory. The child's
 * counters get new pages, because the parent's pages may be those of its recording. */
void stats_reset(void);

/* ---- what was counted: the fields of each struct (record.def) ----
 *
 *     F(group, type, name, length)   length: "", or the length of a text in brackets */

#define MEMBER(group, type, name, length) type name length;
#define RECORD_STRUCT(name, FIELDS)                                                                \
    struct name {                                                                                  \
        FIELDS(MEMBER, )                                                                           \
    }

/* The process that counts. */
enum { PROGRAM_NAME = 232, MANAGER_NAME = 16 };
#define PROCESS_FIELDS(F, G)                                                                       \
    F(G, int64_t, id, )                                                                            \
    F(G, int64_t, rank, )    /* -1: none */                                                        \
    F(G, uint64_t, begin, )  /* of HIP's start, as clock_ns */                                     \
    F(G, uint64_t, last, )   /* the end of the last call, or of the process */                     \
    F(G, uint64_t, exited, ) /* 1: the process has ended by exit */                                \
    F(G, uint64_t, faults, ) /* 1: a kernel has accessed memory that it may not access */          \
    F(G, uint64_t, fault, )  /* the address, as AMD's driver reports it: that of the page */       \
    F(G, int64_t, date, )    /* of the first call, in seconds since 1970 */                        \
    F(G, char, program, [PROGRAM_NAME])                                                            \
    F(G, char, manager, [MANAGER_NAME]) /* the manager's state, "" before the end */
RECORD_STRUCT(process, PROCESS_FIELDS);

/* The duration of HIP's start, HIP's version, and the device on which HIP started. */
enum { DEVICE_NAME = 232, OTHER_CALLS = 128 };
#define START_FIELDS(F, G)                                                                         \
    F(G, uint64_t, nanoseconds, )                                                                  \
    F(G, uint64_t, counted, )              /* 0: neither statistics nor a trace are on */          \
    F(G, uint64_t, exclusive, )            /* 1: MGPU_RT_EXCLUSIVE=on */                           \
    F(G, int64_t, version, )               /* from hipRuntimeGetVersion; 0: unknown */             \
    F(G, char, device, [DEVICE_NAME])      /* its name; "": unknown */                             \
    F(G, char, other_calls, [OTHER_CALLS]) /* which call of HIP other code made first              \
                                            * (driver/witness.h); "": unknown */
RECORD_STRUCT(start, START_FIELDS);

#define COUNTER_FIELDS(F, G) F(G, uint64_t, calls, ) F(G, uint64_t, nanoseconds, )
RECORD_STRUCT(counter, COUNTER_FIELDS);

#define CACHE_FIELDS(F, G)                                                                         \
    F(G, uint64_t, hits, )                                                                         \
    F(G, uint64_t, misses, )                                                                       \
    F(G, uint64_t, bypasses, ) /* HIP answered, and this cache keeps nothing */                    \
    F(G, uint64_t, evictions, )
RECORD_STRUCT(cache_counter, CACHE_FIELDS);

#define COPY_FIELDS(F, G) F(G, uint64_t, calls, ) F(G, uint64_t, bytes, )
RECORD_STRUCT(copy_counter, COPY_FIELDS);

/* Device memory in bytes. The cache of memory counts `reserved`, `peak_reserved` and `blocks` under
 * tables_lock, even if no statistics are requested. */
#define MEMORY_FIELDS(F, G)                                                                        \
    F(G, uint64_t, reserved, ) /* bytes of all blocks from HIP */                                  \
    F(G, uint64_t, peak_reserved, )                                                                \
    F(G, uint64_t, allocated, ) /* bytes that the program holds through counted calls */           \
    F(G, uint64_t, peak_allocated, )                                                               \
    F(G, uint64_t, blocks, )                                                                       \
    F(G, uint64_t, live, ) /* blocks that the program holds */
RECORD_STRUCT(memory_account, MEMORY_FIELDS);

/* Graphs (graphs/). */
#define GRAPH_FIELDS(F, G)                                                                         \
    F(G, uint64_t, built, )                                                                        \
    F(G, uint64_t, refused, ) /* not built, and reported on stderr */                              \
    F(G, uint64_t, launches, )                                                                     \
    F(G, uint64_t, nodes, ) /* the sum over all launches */                                        \
    F(G, uint64_t, plain, ) /* runs of functions of `lower --graph` without a graph */
RECORD_STRUCT(graph_counter, GRAPH_FIELDS);

/* Host memory that stays registered with HIP after the program has unregistered the memory. */
#define KEPT_FIELDS(F, G)                                                                          \
    F(G, uint64_t, ranges, )  /* now */                                                            \
    F(G, uint64_t, bytes, )   /* now */                                                            \
    F(G, uint64_t, changed, ) /* registrations that ended because their pages changed */           \
    F(G, uint64_t, limited, ) /* registrations that ended for the limit */
RECORD_STRUCT(kept_counter, KEPT_FIELDS);

/* The reasons why HIP allocated blocks of device memory, in place of the cache. */
#define MADE_FIELDS(F, G)                                                                          \
    F(G, uint64_t, first_use, ) /* no cached block was idle, and none had gone */                  \
    F(G, uint64_t, size, )      /* all idle blocks had other sizes */                              \
    F(G, uint64_t, waits, )     /* each cached block of the size waited for a stream */            \
    F(G, uint64_t, limit, ) /* HIP had freed a block that could serve: for the limit, or for lack  \
                             * of memory */                                                        \
    F(G, uint64_t, other_code, ) /* blocks that other code had freed by calling HIP */
RECORD_STRUCT(made_counter, MADE_FIELDS);

/* A kernel of an image; a kernel of the same name in another image is a different kernel. Longer
 * names are cut off. */
enum { KERNEL_NAME = 232 };
#define KERNEL_FIELDS(F, G)                                                                        \
    F(G, uint64_t, image, ) /* the image's hash; 0: unknown */                                     \
    F(G, char, name, [KERNEL_NAME])
RECORD_STRUCT(kernel_name, KERNEL_FIELDS);

/* A place in a file that the loader has mapped (mapped_place). Python finds its symbol. */
enum { PLACE_FILE = 248 };
#define PLACE_FIELDS(F, G) F(G, uint64_t, offset, ) F(G, char, file, [PLACE_FILE])
RECORD_STRUCT(place, PLACE_FIELDS);

/* The reasons why an image is loaded again each time (record_head.c has the texts). */
enum unshared {
    UNSHARED_NOT,
    UNSHARED_CACHE_OFF,
    UNSHARED_WRITABLE,
    UNSHARED_OPAQUE,
    UNSHARED_REASONS
};

/* The number of loads of an image. */
#define MODULE_FIELDS(F, G)                                                                        \
    F(G, uint64_t, bytes, )                                                                        \
    F(G, uint64_t, loads, )                                                                        \
    F(G, uint64_t, driver_loads, )                                                                 \
    F(G, uint64_t, why, ) /* enum unshared */
RECORD_STRUCT(module_counter, MODULE_FIELDS);

enum { RECORD_HEAD = 16384, COUNT_PAGE = 4096, KERNELS = 1024, MODULES = 512, FAILURES = 1024 };

/* All counters. The struct has its own pages, because a recording may be mapped over these pages
 * (recorder.h). It begins with the head of the recording (record_head.c). */
struct counts {
    char head[RECORD_HEAD];
#define RECORD_COUNTS
#define ONE(name, type, fields) type name;
#define MANY(name, type, count, fields) type name[count];
#define VALUE(name) uint64_t name;
#include "telemetry/record.def"
} __attribute__((aligned(COUNT_PAGE)));

/* Returns the key of a failure, which combines the function and the error. If the failure belongs
 * to no function of the ABI, `function` is ABI_COUNT. */
static inline uint64_t failure_key(enum abi_index function, hipError_t error) {
    return (uint64_t)(function + 1) << 32 | (uint32_t)error;
}
static inline size_t failure_function(uint64_t key) {
    return (size_t)(key >> 32) - 1;
}
static inline hipError_t failure_error(uint64_t key) {
    return (hipError_t)(uint32_t)key;
}

extern struct counts counts;
extern const char *const abi_names[ABI_COUNT], *const hip_names[HIP_COUNT];

/* Returns the name of a function of the ABI, or "(others)" for ABI_COUNT. */
static inline const char *abi_name(size_t function) {
    return function < ABI_COUNT ? abi_names[function] : "(others)";
}

#endif
