/* The counts and times of the program's calls, of driver calls, caches, kernels, copies, modules
 * and memory. telemetry/recording/ shows them. */
#ifndef MGPU_RT_COUNTERS_H
#define MGPU_RT_COUNTERS_H

#include "process/options.h"
#include "process/state.h"
#include "telemetry/call.h"

#include <stdbool.h>
#include <stdint.h>

/* One index for each function of HIP, in the order of hip.def. */
enum hip_index {
#define HIP_FN(need, name, params, args) HIP_##name,
#include "driver/hip.def"
#undef HIP_FN
    HIP_COUNT
};

/* The kind of a copy, as far as the runtime's table of memory tells. */
enum copy_way {
    COPY_TO_DEVICE,   /* into a block of device memory, from memory that is not the library's */
    COPY_FROM_DEVICE, /* out of a block */
    COPY_ON_DEVICE,   /* between two */
    COPY_UNKNOWN,     /* between two places that are not the library's */
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
/* Notes that HIP has made an object that the cache keeps: the call is a miss, which is counted in
 * every process. */
void stats_miss(enum cache_kind cache);
void stats_hit(enum cache_kind cache);
void stats_eviction(enum cache_kind cache);

/* Counts a failed call of the program; ABI_COUNT: the failure is of no function of the ABI. */
void stats_failure(enum abi_index function, hipError_t error);

/* Makes a child of fork count from 0, in pages of its own. */
void stats_reset(void);

/* ---- what was counted ---- */

struct cache_counter {
    uint64_t hits, misses, evictions;
};
struct copy_counter {
    uint64_t calls, bytes;
};

/* Device memory in bytes. The memory cache has the ledger; statistics have its state at the end of
 * the program's last call. */
struct memory_account {
    size_t reserved, peak_reserved;   /* held from HIP, and the most ever */
    size_t allocated, peak_allocated; /* in the program's hands, by the calls that were counted, and
                                         the most ever */
    uint64_t blocks, live;            /* live: in the program's hands */
};

/* Graphs (graphs/): built, refused with a line on stderr, launched, the nodes of all launches, and
 * the calls of `mgpu-rt lower --graph`'s functions that ran plainly. */
struct graph_counter {
    uint64_t built, refused, launches, nodes, plain;
};

/* A kernel of an image; the same name in another image is another one. Longer names are cut off. */
enum { MODULE_NAME = 112 };
struct kernel_name {
    uint64_t image;           /* the image's hash; 0: not known */
    char module[MODULE_NAME]; /* the gpu.module that the image was made of; "": not known */
    char name[232];
};

/* The reasons for which an image is loaded again each time. */
enum unshared {
    UNSHARED_NOT,
    UNSHARED_CACHE_OFF,
    UNSHARED_WRITABLE,
    UNSHARED_OPAQUE,
    UNSHARED_SETTABLE,
    UNSHARED_REASONS
};

/* The loads of an image. */
struct module_counter {
    uint64_t bytes, loads, driver_loads;
    uint64_t why; /* enum unshared */
    char name[MODULE_NAME];
};

/* The process that counts. */
struct process {
    int64_t id, rank; /* -1: none */
    uint64_t begin;   /* as clock_ns */
    int64_t date;     /* of the process's begin, in seconds since 1970 */
    char program[232];
};

/* HIP's start, and what it started. */
struct start {
    uint64_t nanoseconds;
    int64_t version;  /* hipRuntimeGetVersion's; 0: not known */
    char device[232]; /* the device's name; "": not known */
};

/* Host memory that HIP still has registered after the program's unregister. ranges and bytes are
 * present values. changed counts the registrations that ended because their pages changed, and
 * limited those that the limit ended. */
struct kept_counter {
    uint64_t ranges, bytes; /* now */
    uint64_t changed, limited;
};

/* A place of the program that allocates memory of a device. bytes and blocks are what it holds now.
 * The other fields are what it held when the program held the most of that device. */
struct site_counter {
    uint64_t bytes, blocks, peak_bytes, peak_blocks;
    uint64_t offset;  /* in the file; in memory, if it is in no file */
    char symbol[152]; /* with an offset; "": not known */
    char file[160];   /* "": none, as with a JIT's code */
};

enum { SITES = 256 };

enum { COUNT_PAGE = 4096, KERNELS = 1024, MODULES = 512, FAILURES = 1024 };

/* On pages of their own: a file may lie under them (output.h). */
struct counts {
    struct process process;
    struct start start;
    uint64_t last; /* end of the program's last call */
    struct counter abi[ABI_COUNT], hip[HIP_COUNT];
    struct cache_counter caches[CACHE_COUNT];
    struct copy_counter copies[COPY_WAYS];
    struct memory_account memory[MOST_DEVICES];
    uint64_t site_keys[SITES];            /* keys.h */
    struct site_counter sites[SITES + 1]; /* the last row: all places that have no row */
    uint64_t site_devices[SITES + 1], site_held[MOST_DEVICES], site_peaks[MOST_DEVICES];
    uint64_t site_grows[MOST_DEVICES]; /* 1: what the sites hold now is the most so far */
    struct graph_counter graphs;
    struct kept_counter kept;
    uint64_t failure_keys[FAILURES], failures[FAILURES]; /* of calls: keys.h, how many */
    uint64_t overridden; /* calls that functions of the user answered without this library */
    struct counter
        other_kernels; /* launches of kernels without a row: a symbol, a function of HIP's */
    uint64_t kernel_keys[KERNELS], module_keys[MODULES]; /* keys.h; a module's is its hash */
    struct counter kernels[KERNELS];                     /* launches */
    struct kernel_name kernel_names[KERNELS];
    struct module_counter modules[MODULES];
} __attribute__((aligned(COUNT_PAGE)));

/* Returns a failure's key: its function, ABI_COUNT for none of the ABI, and its error. */
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

/* Returns the name of a function of the ABI; for ABI_COUNT the name of all others. */
static inline const char *abi_name(size_t function) {
    return function < ABI_COUNT ? abi_names[function] : "(others)";
}

#endif
