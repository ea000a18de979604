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

/* ---- lines above and below the tables ---- */

static void print_failures(void) {
    char error[HIP_ERROR_TEXT];
    for (size_t i = 0; i < FAILURES; i++)
        if (counts.failures[i])
            line_print("%lu call%s of %s failed with %s", counts.failures[i],
                       counts.failures[i] == 1 ? "" : "s",
                       abi_name(failure_function(counts.failure_keys[i])),
                       hip_error_text(failure_error(counts.failure_keys[i]), error));
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
    line_print("statistics of process %ld, %s", counts.process.id, counts.process.program);
    print_failures();
    for (size_t i = 0; i < ABI_COUNT; i++)
        add_row(table, abi_names[i], &counts.abi[i]);
    print_table("calls of the program", "function", table);
    for (size_t i = 0; i < HIP_COUNT; i++)
        add_row(table, hip_names[i], &counts.hip[i]);
    if (table->count || !counts.overridden)
        print_table("calls of the driver", "function", table);
    for (size_t i = 0; i < KERNELS; i++)
        if (counts.kernels[i].calls)
            add_row(table, kernel_label(i, table->texts[i]), &counts.kernels[i]);
    add_row(table, "(others)", &counts.other_kernels);
    if (table->count)
        print_table(counts.graphs.launches ? "launches of kernels, host time (a graph's count once)"
                                           : "launches of kernels, host time",
                    "kernel", table);
    print_start(&counts.start);
    free(table);
}
