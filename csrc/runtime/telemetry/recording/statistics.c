/* Prints counts and times of three kinds: the program's calls, the calls to the driver, and the
 * kernels. */
#include "driver/hip.h"
#include "process/lines.h"
#include "telemetry/counters.h"
#include "telemetry/recording/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct row {
    const char *name;
    struct counter counter;
};

enum { LABEL = KERNEL_NAME + sizeof "01234567::" };

/* The rows of one table. The array has space for the rows of any table. */
struct rows {
    size_t count;
    struct row rows[KERNELS + ABI_COUNT + HIP_COUNT];
    char texts[KERNELS][LABEL];
};

static int by_time(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    return (left->counter.nanoseconds < right->counter.nanoseconds) -
           (left->counter.nanoseconds > right->counter.nanoseconds);
}

static void add_row(struct rows *table, const char *name, const struct counter *counter) {
    if (counter->calls)
        table->rows[table->count++] = (struct row){name, *counter};
}

static const char rule[] = "------ ----------- ----------- --------- --------------------\n";

/* Prints a table with the columns of `ltrace -c`, and then removes all rows from `table`. */
static void print_table(const char *title, const char *what, struct rows *table) {
    struct counter total = {0, 0};
    for (size_t i = 0; i < table->count; i++) {
        total.calls += table->rows[i].counter.calls;
        total.nanoseconds += table->rows[i].counter.nanoseconds;
    }
    qsort(table->rows, table->count, sizeof *table->rows, by_time);
    fprintf(stderr, "mgpu_rt: %s\n%% time     seconds  usecs/call     calls      %s\n%s", title,
            what, rule);
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        const double time = (double)row->counter.nanoseconds;
        fprintf(stderr, "%6.2f %11.6f %11.2f %9lu %s\n",
                total.nanoseconds ? 100 * time / (double)total.nanoseconds : 0.0, time / 1e9,
                time / 1e3 / (double)row->counter.calls, row->counter.calls, row->name);
    }
    fprintf(stderr, "%s100.00 %11.6f %11s %9lu total\n", rule, (double)total.nanoseconds / 1e9, "",
            total.calls);
    table->count = 0;
}

/* ---- lines below and above the tables: none if there is nothing to say ---- */

static void print_failures(void) {
    char error[HIP_ERROR_TEXT];
    for (size_t i = 0; i < FAILURES; i++)
        if (counts.failures[i])
            line_print("%lu call%s of %s failed with %s", counts.failures[i],
                       counts.failures[i] == 1 ? "" : "s",
                       abi_name(failure_function(counts.failure_keys[i])),
                       hip_error_text(failure_error(counts.failure_keys[i]), error));
}

static void print_overridden(void) {
    if (counts.overridden)
        line_print("a runtime in place of this library answered %lu calls: its calls of the driver "
                   "are not counted",
                   counts.overridden);
}

static void print_graphs(const struct graph_counter *graphs) {
    if (graphs->built || graphs->refused || graphs->plain)
        line_print("graphs: %lu built, %lu refused; graph launches: %lu, in place of %lu calls; "
                   "calls without a graph: %lu",
                   graphs->built, graphs->refused, graphs->launches, graphs->nodes, graphs->plain);
}

static void print_registrations(const struct kept_counter *kept,
                                const struct cache_counter *cache) {
    if (cache->misses)
        line_print("registered memory: hits %lu, misses %lu, cached %lu (%lu bytes), evicted %lu: "
                   "%lu because pages changed, %lu for the limit",
                   cache->hits, cache->misses, kept->ranges, kept->bytes, cache->evictions,
                   kept->changed, kept->limited);
}

static void print_made(const struct made_counter *made) {
    if (made->first_use || made->size || made->waits || made->limit || made->other_code)
        line_print("memory that the driver allocated: %lu at first use, %lu as cached blocks had "
                   "other sizes, %lu as cached blocks waited for a stream, %lu after the limit, "
                   "%lu after other code",
                   made->first_use, made->size, made->waits, made->limit, made->other_code);
}

/* HIP's release in AMD's form: 5.2.21153. */
static void print_start(const struct start *start) {
    enum { MAJOR = 10000000, MINOR = 100000 };
    char date[32], release[64] = "of an unknown release";
    const time_t began = (time_t)counts.process.date;
    struct tm utc = {0};
    (void)gmtime_r(&began, &utc);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    if (start->version)
        snprintf(release, sizeof release, "%ld.%ld.%ld", start->version / MAJOR,
                 start->version % MAJOR / MINOR, start->version % MINOR);
    line_print("HIP's start, once, not in the times above: %.6f s",
               (double)start->nanoseconds / 1e9);
    line_print("on %s, HIP %s, %s%s", start->device[0] ? start->device : "an unknown device",
               release, date,
               strstr(start->device, "(emulated)") ? "; EMULATED: no GPU was timed" : "");
    if (start->other_calls[0])
        line_print("calls of HIP by other code: %s", start->other_calls);
}

/* Writes a kernel's name. If another kernel has the same name, 8 digits of the image's hash precede
 * the name. */
static const char *kernel_label(size_t row, char text[LABEL]) {
    const struct kernel_name *kernel = &counts.kernel_names[row];
    size_t alike = 0;
    for (size_t i = 0; i < KERNELS; i++)
        alike += strcmp(counts.kernel_names[i].name, kernel->name) == 0;
    if (alike > 1 && kernel->image)
        snprintf(text, LABEL, "%08x::%s", (unsigned)(kernel->image >> 32), kernel->name);
    else
        snprintf(text, LABEL, "%s", kernel->name);
    line_clean(text); /* an image may contain names that control a terminal */
    return text;
}

void statistics_print_tables(void) {
    struct rows *table = calloc(1, sizeof *table);
    if (!table)
        return;
    print_failures();
    for (size_t i = 0; i < ABI_COUNT; i++)
        add_row(table, abi_names[i], &counts.abi[i]);
    print_table("calls of the program", "function", table);
    for (size_t i = 0; i < HIP_COUNT; i++)
        add_row(table, hip_names[i], &counts.hip[i]);
    if (table->count || !counts.overridden)
        print_table("calls of the driver", "function", table);
    print_overridden();
    for (size_t i = 0; i < KERNELS; i++)
        if (counts.kernels[i].calls)
            add_row(table, kernel_label(i, table->texts[i]), &counts.kernels[i]);
    add_row(table, "(others)", &counts.other_kernels);
    if (table->count)
        print_table("launches of kernels", "kernel", table);
    print_graphs(&counts.graphs);
    print_registrations(&counts.kept, &counts.caches[CACHE_REGISTRATIONS]);
    print_made(&counts.made);
    print_start(&counts.start);
    free(table);
}
