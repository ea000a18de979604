/* Counts and times of the program's calls and of the driver's, and how they are shown. */
#include "stats.h"
#include "block.h"
#include "manager.h"
#include "mgpu_rt.h"
#include "runtime.h"
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct counter {
    uint64_t calls, nanoseconds;
};

static struct counter abi_counters[ABI_COUNT];
static struct counter hip_counters[HIP_COUNT];
static struct {
    uint64_t misses, evictions, bypasses;
} caches[CACHE_COUNT];

static const char *const abi_names[] = {
#define MGPU_FN(result, name, params, args, first, last) #name,
#define MGPU_VOID(name, params, args, first, last) #name,
#include "../abi.def"
#undef MGPU_FN
#undef MGPU_VOID
};

static const char *const hip_names[] = {
#define HIP_FN(need, name, params, args) "hip" #name,
#include "hip.def"
#undef HIP_FN
};

uint64_t stats_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void add(uint64_t *counter, uint64_t amount) {
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

void stats_abi_call(enum abi_index function, uint64_t begin) {
    const uint64_t nanoseconds = stats_now() - begin;
    add(&abi_counters[function].calls, 1);
    add(&abi_counters[function].nanoseconds, nanoseconds);
    if (options.trace[0])
        trace_call(abi_names[function], "program", begin, nanoseconds);
}

void stats_hip_call(enum hip_index function, uint64_t nanoseconds) {
    add(&hip_counters[function].calls, 1);
    add(&hip_counters[function].nanoseconds, nanoseconds);
    if (options.trace[0])
        trace_call(hip_names[function], "driver", stats_now() - nanoseconds, nanoseconds);
}

void stats_miss(enum cache cache) {
    add(&caches[cache].misses, 1);
}
void stats_eviction(enum cache cache) {
    add(&caches[cache].evictions, 1);
}
void stats_bypass(enum cache cache) {
    add(&caches[cache].bypasses, 1);
}

void stats_reset(void) {
    memset(abi_counters, 0, sizeof abi_counters);
    memset(hip_counters, 0, sizeof hip_counters);
    memset(caches, 0, sizeof caches);
    trace_reset();
}

/* ---- the table ---- */

struct row {
    const char *name;
    struct counter counter;
};

static int by_time(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    return (left->counter.nanoseconds < right->counter.nanoseconds) -
           (left->counter.nanoseconds > right->counter.nanoseconds);
}

static const char rule[] = "------ ----------- ----------- --------- --------------------\n";

/* The columns of `ltrace -c`. */
static void print_table(FILE *out, const char *title, const struct counter *counters,
                        const char *const *names, size_t count) {
    struct row rows[(size_t)ABI_COUNT + HIP_COUNT]; /* enough for either */
    struct counter total = {0, 0};
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!counters[i].calls)
            continue;
        rows[used++] = (struct row){names[i], counters[i]};
        total.calls += counters[i].calls;
        total.nanoseconds += counters[i].nanoseconds;
    }
    qsort(rows, used, sizeof *rows, by_time);
    fprintf(out, "%s\n%% time     seconds  usecs/call     calls      function\n%s", title, rule);
    for (size_t i = 0; i < used; i++) {
        const double time = (double)rows[i].counter.nanoseconds;
        fprintf(out, "%6.2f %11.6f %11.2f %9" PRIu64 " %s\n",
                total.nanoseconds ? 100 * time / (double)total.nanoseconds : 0.0, time / 1e9,
                time / 1e3 / (double)rows[i].counter.calls, rows[i].counter.calls, rows[i].name);
    }
    fprintf(out, "%s100.00 %11.6f %11s %9" PRIu64 " total\n", rule, (double)total.nanoseconds / 1e9,
            "", total.calls);
}

/* ---- JSON ---- */

static void print_counters(FILE *out, const char *key, const struct counter *counters,
                           const char *const *names, size_t count) {
    const char *separator = "";
    fprintf(out, "\"%s\": {", key);
    for (size_t i = 0; i < count; i++) {
        if (!counters[i].calls)
            continue;
        fprintf(out, "%s\"%s\": {\"calls\": %" PRIu64 ", \"ns\": %" PRIu64 "}", separator, names[i],
                counters[i].calls, counters[i].nanoseconds);
        separator = ", ";
    }
    fputs("}", out);
}

static void print_cache(FILE *out, const char *name, enum cache cache, enum abi_index entry,
                        const char *separator) {
    const uint64_t unserved = caches[cache].misses + caches[cache].bypasses;
    const uint64_t calls = abi_counters[entry].calls;
    fprintf(out,
            "\"%s\": {\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"evictions\": %" PRIu64
            "}%s",
            name, calls > unserved ? calls - unserved : 0, caches[cache].misses,
            caches[cache].evictions, separator);
}

/* A device that no block was ever asked of is left out. */
static void print_memory(FILE *out) {
    const char *separator = "";
    fputs("\"memory\": {", out);
    for (int device = 0; device < BLOCK_DEVICES; device++) {
        const struct block_account account = block_account(device);
        if (!account.peak_reserved)
            continue;
        fprintf(out,
                "%s\"%d\": {\"allocated\": %zu, \"peak_allocated\": %zu, \"reserved\": %zu, "
                "\"peak_reserved\": %zu, \"blocks\": %zu, \"cached_blocks\": %zu}",
                separator, device, account.allocated, account.peak_allocated, account.reserved,
                account.peak_reserved, account.blocks, account.cached_blocks);
        separator = ", ";
    }
    fputs("}", out);
}

static const char *const manager_states[] = {"none", "starting", "serving", "ended"};

static void print_json(FILE *out) {
    fputs("{", out);
    print_counters(out, "abi", abi_counters, abi_names, ABI_COUNT);
    fputs(", ", out);
    print_counters(out, "hip", hip_counters, hip_names, HIP_COUNT);
    fputs(", \"cache\": {", out);
    print_cache(out, "modules", CACHE_MODULES, ABI_mgpuModuleLoad, ", ");
    print_cache(out, "functions", CACHE_FUNCTIONS, ABI_mgpuModuleGetFunction, ", ");
    print_cache(out, "streams", CACHE_STREAMS, ABI_mgpuStreamCreate, ", ");
    print_cache(out, "events", CACHE_EVENTS, ABI_mgpuEventCreate, ", ");
    print_cache(out, "memory", CACHE_MEMORY, ABI_mgpuMemAlloc, "");
    fputs("}, ", out);
    print_memory(out);
    fprintf(out, ", \"manager\": \"%s\"}", manager_states[manager_state()]);
}

char *mgpu_rt_stats_json(void) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    print_json(out);
    return fclose(out) == 0 ? text : NULL;
}

/* ---- at exit ---- */

/* The path with each %p replaced by the process id, for programs of several processes. */
static void expand(const char *pattern, char *path, size_t size) {
    size_t used = 0;
    for (const char *at = pattern; *at && used + 1 < size; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            const int length = snprintf(path + used, size - used, "%ld", (long)getpid());
            used = used + (size_t)length < size ? used + (size_t)length : size - 1;
            at++;
        } else {
            path[used++] = *at;
        }
    }
    path[used] = '\0';
}

static void write_tables(FILE *out) {
    print_table(out, "mgpu_rt: calls of the program", abi_counters, abi_names, ABI_COUNT);
    print_table(out, "mgpu_rt: calls of the driver", hip_counters, hip_names, HIP_COUNT);
}

static void say_cannot_write(const char *variable, const char *pattern) {
    fprintf(stderr, "mgpu_rt: %s: cannot write '%s': %s\n", variable, pattern, strerror(errno));
}

FILE *stats_open(const char *variable, const char *pattern) {
    char path[4096];
    expand(pattern, path, sizeof path);
    FILE *out = fopen(path, "we");
    if (!out)
        say_cannot_write(variable, path);
    return out;
}

void stats_close(const char *variable, const char *pattern, FILE *file) {
    if (fclose(file) != 0)
        say_cannot_write(variable, pattern);
}

static void write_json(const char *destination) {
    FILE *out = stats_open("MGPU_RT_STATS", destination);
    if (!out)
        return;
    print_json(out);
    fputc('\n', out);
    stats_close("MGPU_RT_STATS", destination, out);
}

void stats_write(const char *destination) {
    const char *path = destination;
    if (strcmp(destination, "1") == 0 || strncmp(destination, "1,", 2) == 0) {
        write_tables(stderr);
        path += destination[1] ? 2 : 1;
    }
    if (path[0])
        write_json(path);
}
