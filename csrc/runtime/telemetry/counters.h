/* Counts and times the program's calls and the calls to HIP. Counts hits and misses of caches,
 * launches, copies, loads of modules, and device memory. telemetry/recording/ prints the
 * counters. */
#ifndef MGPU_RT_COUNTERS_H
#define MGPU_RT_COUNTERS_H

#include "process/options.h"
#include "process/state.h"
#include "telemetry/call.h"

#include <stdbool.h>
#include <stdint.h>

/* The index of each function of HIP, in the order of hip.def. */
enum hip_index {
#define HIP_FN(need, name, params, args) HIP_##name,
#include "driver/hip.def"
#undef HIP_FN
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

struct counter {
    uint64_t calls, nanoseconds;
};

uint64_t clock_ns(void); /* ns, CLOCK_MONOTONIC */
void stats_call(struct counter *counter, uint64_t nanoseconds);
/* Counts a miss, even if no statistics are requested. A miss is a call for which HIP creates an
 * object that the cache keeps. */
void stats_miss(enum cache_kind cache);
void stats_hit(enum cache_kind cache);
void stats_eviction(enum cache_kind cache);

/* Counts a failed call of the program. If the failure belongs to no function of the ABI, `function`
 * is ABI_COUNT. */
void stats_failure(enum abi_index function, hipError_t error);

/* Sets the counters of a forked child to 0, except the counters of device memory. The child's
 * counters get new pages, because the parent may have mapped the old pages from a file. */
void stats_reset(void);

/* ---- what was counted ---- */

struct cache_counter {
    uint64_t hits, misses, evictions;
};
struct copy_counter {
    uint64_t calls, bytes;
};

/* Device memory in bytes. `reserved`, `peak_reserved` and `blocks` are copied from the memory
 * cache's ledger at the end of each call. */
struct memory_account {
    size_t reserved, peak_reserved;   /* bytes of all blocks from HIP: current and maximum */
    size_t allocated, peak_allocated; /* bytes that the program holds through counted calls:
                                       * current and maximum */
    uint64_t blocks, live;            /* `live` is the number of blocks that the program holds */
};

/* Counts graphs (graphs/). `refused` counts the graphs that the library did not build and reported
 * on stderr. `nodes` is the sum of the nodes over all launches. `plain` counts how often a function
 * of `mgpu-rt lower --graph` ran without a graph. */
struct graph_counter {
    uint64_t built, refused, launches, nodes, plain;
};

/* A kernel of an image; a kernel of the same name in another image is a different kernel. Longer
 * names are cut off. */
enum { MODULE_NAME = 112 };
struct kernel_name {
    uint64_t image;           /* the image's hash; 0: unknown */
    char module[MODULE_NAME]; /* the gpu.module from which the image was built; "": unknown */
    char name[232];
};

/* The reasons why an image is loaded again each time. */
enum unshared {
    UNSHARED_NOT,
    UNSHARED_CACHE_OFF,
    UNSHARED_WRITABLE,
    UNSHARED_OPAQUE,
    UNSHARED_SETTABLE,
    UNSHARED_REASONS
};

/* The number of loads of an image. */
struct module_counter {
    uint64_t bytes, loads, driver_loads;
    uint64_t why; /* enum unshared */
    char name[MODULE_NAME];
};

/* The process that counts. */
struct process {
    int64_t id, rank; /* -1: none */
    uint64_t begin;   /* as clock_ns */
    int64_t date;     /* the time at which the recording began, in seconds since 1970 */
    char program[232];
};

/* The duration of HIP's start, HIP's version, and the device on which HIP started. */
struct start {
    uint64_t nanoseconds;
    int64_t version;       /* version from hipRuntimeGetVersion; 0: unknown */
    char device[232];      /* the device's name; "": unknown */
    char other_calls[128]; /* which call of HIP other code made first (driver/witness.h); "":
                            * unknown */
};

/* Host memory that stays registered with HIP after the program has unregistered the memory.
 * `ranges` and `bytes` are current values. `changed` counts the registrations that ended because
 * their pages changed. `limited` counts the registrations that ended because the limit was
 * exceeded. */
struct kept_counter {
    uint64_t ranges, bytes; /* now */
    uint64_t changed, limited;
};

/* The reasons why HIP allocated blocks of device memory, in place of the cache. */
struct made_counter {
    uint64_t first_use; /* no cached block was idle */
    uint64_t size;      /* all idle blocks had other sizes */
    uint64_t waits;     /* each cached block of the size waited for a stream */
    uint64_t limit; /* HIP had freed a block of the size: for the limit, or for lack of memory */
    uint64_t other_code; /* number of blocks that other code had freed by calling HIP */
};

/* A place in the program's code that allocates device memory. `bytes` and `blocks` are the current
 * values. `peak_bytes` and `peak_blocks` are the values at the time when the program held the most
 * memory on the place's device. */
struct site_counter {
    uint64_t bytes, blocks, peak_bytes, peak_blocks;
    uint64_t offset;  /* offset in the file; address in memory if no file contains the place */
    char symbol[152]; /* name with an offset; "": unknown */
    char file[160];   /* "": no file contains the place, such as a place in a JIT's code */
};

enum { SITES = 256 };

enum { COUNT_PAGE = 4096, KERNELS = 1024, MODULES = 512, FAILURES = 1024 };

/* All counters. The struct has its own pages, because a file may be mapped over these pages
 * (output.h). */
struct counts {
    struct process process;
    struct start start;
    uint64_t last; /* time of the end of the program's last call */
    struct counter abi[ABI_COUNT], hip[HIP_COUNT];
    struct cache_counter caches[CACHE_COUNT];
    struct copy_counter copies[COPY_WAYS];
    struct memory_account memory[MOST_DEVICES];
    uint64_t site_keys[SITES];            /* keys.h */
    struct site_counter sites[SITES + 1]; /* the last row counts all places without a row of their
                                           * own */
    uint64_t site_devices[SITES + 1], site_held[MOST_DEVICES], site_peaks[MOST_DEVICES];
    uint64_t site_grows[MOST_DEVICES]; /* 1: the memory is at its peak now, and the sites' peak
                                        * values are not stored yet */
    struct graph_counter graphs;
    struct kept_counter kept;
    struct made_counter made;
    uint64_t failure_keys[FAILURES], failures[FAILURES]; /* keys of failed calls (keys.h), and their
                                                          * counts */
    uint64_t overridden; /* number of calls that an override answered without calling this library
                          */
    struct counter other_kernels; /* launches of kernels without a row, such as kernels launched by
                                   * host symbol, and kernels whose handle came from HIP */
    uint64_t kernel_keys[KERNELS], module_keys[MODULES]; /* table of keys (keys.h); a module's key
                                                          * is its hash */
    struct counter kernels[KERNELS];                     /* launches */
    struct kernel_name kernel_names[KERNELS];
    struct module_counter modules[MODULES];
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
