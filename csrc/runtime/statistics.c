/* How counts and times of the program's calls and of the driver's are shown. */
#include "statistics.h"
#include "base/abi.h"
#include "base/counters.h"
#include "base/output.h"
#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "manager/manager.h"
#include "mgpu_rt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const uint64_t unserved = stats_of_caches[cache].misses + stats_of_caches[cache].bypasses;
    const uint64_t calls = stats_of_abi[entry].calls;
    fprintf(out,
            "\"%s\": {\"hits\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"evictions\": %" PRIu64
            "}%s",
            name, calls > unserved ? calls - unserved : 0, stats_of_caches[cache].misses,
            stats_of_caches[cache].evictions, separator);
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
    print_counters(out, "abi", stats_of_abi, abi_names, ABI_COUNT);
    fputs(", ", out);
    print_counters(out, "hip", stats_of_hip, hip_names, HIP_COUNT);
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

static void write_tables(FILE *out) {
    print_table(out, "mgpu_rt: calls of the program", stats_of_abi, abi_names, ABI_COUNT);
    print_table(out, "mgpu_rt: calls of the driver", stats_of_hip, hip_names, HIP_COUNT);
}

static void write_json(const char *destination) {
    FILE *out = output_open("MGPU_RT_STATS", destination);
    if (!out)
        return;
    print_json(out);
    fputc('\n', out);
    output_close("MGPU_RT_STATS", destination, out);
}

void statistics_write(const char *destination) {
    const char *path = destination;
    if (strcmp(destination, "1") == 0 || strncmp(destination, "1,", 2) == 0) {
        write_tables(stderr);
        path += destination[1] ? 2 : 1;
    }
    if (path[0])
        write_json(path);
}
