/* Counts and times the program's calls and driver calls, and counts the work of caches, kernels,
 * copies, modules and memory. telemetry/recording/ prints the counters. */
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

/* The kind of a copy, according to the runtime's table of memory. */
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
/* Records that HIP has created an object that the cache keeps: the call is a miss, which is always
 * counted. */
void stats_miss(enum cache_kind cache);
void stats_hit(enum cache_kind cache);
void stats_eviction(enum cache_kind cache);

/* Counts a failed call of the program; ABI_COUNT: the failure belongs to no function of the ABI. */
void stats_failure(enum abi_index function, hipError_t error);

/* Makes a forked child count from 0, in its own pages. */
void stats_reset(void);

/* ---- what was counted ---- */

struct cache_counter {
    uint64_t hits, misses, evictions;
};
struct copy_counter {
    uint64_t calls, bytes;
};

/* Device memory in bytes. The memory cache owns the ledger; statistics contain its state at the end
 * of the program's last call. */
struct memory_account {
    size_t reserved, peak_reserved;   /* bytes of all blocks from HIP: now, and the most so far */
    size_t allocated, peak_allocated; /* bytes that the program holds through counted calls: now,
                                       * and the most so far */
    uint64_t blocks, live;            /* live: number held by the program */
};

/* Graphs (graphs/): built, refused with a line on stderr, launched, nodes of all launches. plain:
 * calls that functions of `mgpu-rt lower --graph` made without a graph. */
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
    int64_t date;     /* start of the process, in seconds since 1970 */
    char program[232];
};

/* HIP's start: its duration, HIP's version, and the device on which HIP started. */
struct start {
    uint64_t nanoseconds;
    int64_t version;  /* version from hipRuntimeGetVersion; 0: unknown */
    char device[232]; /* the device's name; "": unknown */
};

/* Host memory that HIP still registers after the program has unregistered it. `ranges` and `bytes`
 * are current values. `changed` counts the registrations that ended because their pages changed,
 * and `limited` counts those that the limit ended. */
struct kept_counter {
    uint64_t ranges, bytes; /* now */
    uint64_t changed, limited;
};

/* A place of the program that allocates device memory. `bytes` and `blocks` are the current values.
 * `peak_bytes` and `peak_blocks` are the values at the time when the program held the most memory
 * of that device. */
struct site_counter {
    uint64_t bytes, blocks, peak_bytes, peak_blocks;
    uint64_t offset;  /* offset in the file; address in memory if no file contains the place */
    char symbol[152]; /* name with an offset; "": unknown */
    char file[160];   /* "": no file, as for a JIT's code */
};

enum { SITES = 256 };

enum { COUNT_PAGE = 4096, KERNELS = 1024, MODULES = 512, FAILURES = 1024 };

/* Stored on separate pages, because a file may be mapped there (output.h). */
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
    uint64_t failure_keys[FAILURES], failures[FAILURES]; /* keys of failed calls (keys.h), and their
                                                          * counts */
    uint64_t overridden; /* number of calls that an override answered without calling this library
                          */
    struct counter other_kernels; /* number of launches of kernels without a row, such as a kernel
                                   * launched by host symbol, or a function that the program got
                                   * from HIP */
    uint64_t kernel_keys[KERNELS], module_keys[MODULES]; /* table of keys (keys.h); a module's key
                                                          * is its hash */
    struct counter kernels[KERNELS];                     /* launches */
    struct kernel_name kernel_names[KERNELS];
    struct module_counter modules[MODULES];
} __attribute__((aligned(COUNT_PAGE)));

/* Returns a failure's key: its function (ABI_COUNT if it belongs to none) and its error. */
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

/* Returns the name of a function of the ABI; for ABI_COUNT, the name for all other functions. */
static inline const char *abi_name(size_t function) {
    return function < ABI_COUNT ? abi_names[function] : "(others)";
}

#endif
