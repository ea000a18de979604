/* Prints counts and times of three kinds: the program's calls, the calls to the driver, and the
 * kernels. */
#include "driver/hip.h"
#include "process/lines.h"
#include "telemetry/counters.h"
#include "telemetry/recording/recorder.h"

#include <inttypes.h>
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
static void print_table(FILE *out, const char *title, const char *what, struct rows *table) {
    struct counter total = {0, 0};
    for (size_t i = 0; i < table->count; i++) {
        total.calls += table->rows[i].counter.calls;
        total.nanoseconds += table->rows[i].counter.nanoseconds;
    }
    qsort(table->rows, table->count, sizeof *table->rows, by_time);
    fprintf(out, "%s\n%% time     seconds  usecs/call     calls      %s\n%s", title, what, rule);
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        const double time = (double)row->counter.nanoseconds;
        fprintf(out, "%6.2f %11.6f %11.2f %9" PRIu64 " %s\n",
                total.nanoseconds ? 100 * time / (double)total.nanoseconds : 0.0, time / 1e9,
                time / 1e3 / (double)row->counter.calls, row->counter.calls, row->name);
    }
    fprintf(out, "%s100.00 %11.6f %11s %9" PRIu64 " total\n", rule, (double)total.nanoseconds / 1e9,
            "", total.calls);
    table->count = 0;
}

/* Prints nothing if no call failed. */
static void print_failures(FILE *out) {
    char error[HIP_ERROR_TEXT];
    for (size_t i = 0; i < FAILURES; i++)
        if (counts.failures[i])
            fprintf(out, "mgpu_rt: %" PRIu64 " call%s of %s failed with %s\n", counts.failures[i],
                    counts.failures[i] == 1 ? "" : "s",
                    abi_name(failure_function(counts.failure_keys[i])),
                    hip_error_text(failure_error(counts.failure_keys[i]), error));
}

static void print_overridden(FILE *out) {
    if (counts.overridden)
        fprintf(out,
                "mgpu_rt: a runtime in place of this library answered %" PRIu64
                " calls: its calls of the driver are not counted\n",
                counts.overridden);
}

static void print_graphs(FILE *out, const struct graph_counter *graphs) {
    if (graphs->built || graphs->refused || graphs->plain)
        fprintf(out,
                "mgpu_rt: graphs: %" PRIu64 " built, %" PRIu64 " refused; graph launches: %" PRIu64
                ", in place of %" PRIu64 " calls; calls without a graph: %" PRIu64 "\n",
                graphs->built, graphs->refused, graphs->launches, graphs->nodes, graphs->plain);
}

static void print_registrations(FILE *out) {
    const struct kept_counter *kept = &counts.kept;
    const struct cache_counter *cache = &counts.caches[CACHE_REGISTRATIONS];
    if (cache->misses)
        fprintf(out,
                "mgpu_rt: registered memory: hits %" PRIu64 ", misses %" PRIu64 ", cached %" PRIu64
                " (%" PRIu64 " bytes), evicted %" PRIu64 ": %" PRIu64
                " because pages changed, %" PRIu64 " for the limit\n",
                cache->hits, cache->misses, kept->ranges, kept->bytes, cache->evictions,
                kept->changed, kept->limited);
}

static void print_made(FILE *out) {
    const struct made_counter *made = &counts.made;
    if (made->first_use || made->size || made->waits || made->limit || made->other_code)
        fprintf(out,
                "mgpu_rt: memory that the driver allocated: %" PRIu64 " at first use, %" PRIu64
                " as cached blocks had other sizes, %" PRIu64
                " as cached blocks waited for a stream, %" PRIu64 " after the limit, %" PRIu64
                " after other code\n",
                made->first_use, made->size, made->waits, made->limit, made->other_code);
}

/* HIP's release in AMD's form: 5.2.21153. */
static void print_release(FILE *out, int64_t version) {
    enum { MAJOR = 10000000, MINOR = 100000 };
    if (version)
        fprintf(out, "HIP %" PRId64 ".%" PRId64 ".%" PRId64, version / MAJOR,
                version % MAJOR / MINOR, version % MINOR);
    else
        fputs("HIP of an unknown release", out);
}

static void print_start(FILE *out) {
    char date[32];
    const time_t began = (time_t)counts.process.date;
    struct tm utc = {0};
    const bool emulated = strstr(counts.start.device, "(emulated)") != NULL;
    (void)gmtime_r(&began, &utc);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    fprintf(out, "mgpu_rt: HIP's start, once, not in the times above: %.6f s\n",
            (double)counts.start.nanoseconds / 1e9);
    fprintf(out, "mgpu_rt: on %s, ",
            counts.start.device[0] ? counts.start.device : "an unknown device");
    print_release(out, counts.start.version);
    fprintf(out, ", %s%s\n", date, emulated ? "; EMULATED: no GPU was timed" : "");
    if (counts.start.other_calls[0])
        fprintf(out, "mgpu_rt: calls of HIP by other code: %s\n", counts.start.other_calls);
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

void statistics_print_tables(FILE *out) {
    struct rows *table = calloc(1, sizeof *table);
    if (!table)
        return;
    print_failures(out);
    for (size_t i = 0; i < ABI_COUNT; i++)
        add_row(table, abi_names[i], &counts.abi[i]);
    print_table(out, "mgpu_rt: calls of the program", "function", table);
    for (size_t i = 0; i < HIP_COUNT; i++)
        add_row(table, hip_names[i], &counts.hip[i]);
    if (table->count || !counts.overridden)
        print_table(out, "mgpu_rt: calls of the driver", "function", table);
    print_overridden(out);
    for (size_t i = 0; i < KERNELS; i++)
        if (counts.kernels[i].calls)
            add_row(table, kernel_label(i, table->texts[i]), &counts.kernels[i]);
    add_row(table, "(others)", &counts.other_kernels);
    if (table->count)
        print_table(out, "mgpu_rt: launches of kernels", "kernel", table);
    print_graphs(out, &counts.graphs);
    print_registrations(out);
    print_made(out);
    print_start(out);
    free(table);
}
