/* Writes the statistics as JSON, as csrc/include/mgpu_rt.h describes. */
#include "driver/hip.h"
#include "manager/manager.h"
#include "memory/blocks.h"
#include "mgpu.h"
#include "process/state.h"
#include "telemetry/counters.h"
#include "telemetry/process.h"
#include "telemetry/recording/json.h"
#include "telemetry/recording/kernel_label.h"
#include "telemetry/recording/statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the seconds as two integers, because a program's locale may have a decimal comma. */
static void print_process(FILE *out, const struct process *process, uint64_t end,
                          const char *ended) {
    const uint64_t microseconds = end > process->begin ? (end - process->begin) / 1000 : 0;
    fprintf(out, "\"process\": {\"pid\": %" PRId64 ", \"rank\": ", process->id);
    if (process->rank >= 0)
        fprintf(out, "%" PRId64, process->rank);
    else
        fputs("null", out);
    fputs(", \"program\": ", out);
    json_text(out, process->program);
    fprintf(out,
            ", \"ended\": \"%s\", \"seconds\": %" PRIu64 ".%06" PRIu64 ", \"date\": %" PRId64 "}",
            ended, microseconds / 1000000, microseconds % 1000000, process->date);
}

/* Prints null for an unknown value. */
static void print_text_or_null(FILE *out, const char *text) {
    if (text[0])
        json_text(out, text);
    else
        fputs("null", out);
}

static void print_start_and_device(FILE *out, const struct start *start) {
    char release[STATISTICS_RELEASE];
    fprintf(out, ", \"start\": {\"ns\": %" PRIu64 "}, \"device\": {\"name\": ", start->nanoseconds);
    print_text_or_null(out, start->device);
    if (start->version)
        fprintf(out, ", \"hip\": \"%s\"}", statistics_release(start->version, release));
    else
        fputs(", \"hip\": null}", out);
    fputs(", \"other_calls\": ", out);
    print_text_or_null(out, start->other_calls);
}

/* The names of the members, for each struct in counters.h that contains only 64-bit counts. */
static const char *const counter_fields[] = {"calls", "ns", NULL};
static const char *const copy_fields[] = {"calls", "bytes", NULL};
static const char *const cache_fields[] = {"hits", "misses", "evictions", NULL};
static const char *const graph_fields[] = {"built", "refused", "launches", "nodes", "plain", NULL};
static const char *const made_fields[] = {"first_use", "size",       "waits",
                                          "limit",     "other_code", NULL};
static const char *const kept_fields[] = {"ranges", "bytes", "changed", "limited", NULL};

static void print_counters(FILE *out, const char *key, const struct counter *counters,
                           const char *const *names, size_t count) {
    bool first = true;
    fprintf(out, ", \"%s\": {", key);
    for (size_t i = 0; i < count; i++) {
        if (!counters[i].calls)
            continue;
        fprintf(out, "%s\"%s\": ", json_separator(&first), names[i]);
        json_counts(out, counter_fields, (const uint64_t *)&counters[i]);
    }
    fputs("}", out);
}

/* ---- failed calls ---- */

static void print_failed_calls(FILE *out, const struct counts *record) {
    char error[HIP_ERROR_TEXT];
    bool first = true;
    fputs(", \"failed\": [", out);
    for (size_t i = 0; i < FAILURES; i++) {
        const size_t function = failure_function(record->failure_keys[i]);
        if (!record->failures[i])
            continue;
        fprintf(out, "%s{\"function\": \"%s\", \"error\": ", json_separator(&first),
                abi_name(function));
        json_text(out, hip_error_text(failure_error(record->failure_keys[i]), error));
        fprintf(out, ", \"calls\": %" PRIu64 "}", record->failures[i]);
    }
    fputs("]", out);
}

/* ---- kernels ---- */

static void print_launches(FILE *out, const struct counter *launches) {
    fprintf(out, ": {\"launches\": %" PRIu64 ", \"ns\": %" PRIu64, launches->calls,
            launches->nanoseconds);
}

static bool have_one_label(const struct kernel_labels *labels, size_t one, size_t other) {
    struct kernel_text text, other_text;
    return strcmp(labels->names[one].name, labels->names[other].name) == 0 &&
           strcmp(kernel_label(labels, one, &text), kernel_label(labels, other, &other_text)) == 0;
}

/* Several rows may show the same name if the names of their kernels were cut off. The launches of
 * such rows are summed in the first row; the other rows have 0 calls. */
static struct counter launches_of(const struct counts *record, const struct kernel_labels *labels,
                                  size_t row) {
    struct counter sum = {0, 0};
    for (size_t i = 0; i < KERNELS && record->kernels[row].calls; i++)
        if (record->kernels[i].calls && have_one_label(labels, i, row)) {
            if (i < row)
                return (struct counter){0, 0};
            sum.calls += record->kernels[i].calls;
            sum.nanoseconds += record->kernels[i].nanoseconds;
        }
    return sum;
}

static void print_kernels(FILE *out, const struct counts *record,
                          const struct kernel_labels *labels) {
    struct kernel_text text;
    bool first = true;
    fputs(", \"kernels\": {", out);
    for (size_t i = 0; i < KERNELS; i++) {
        const struct counter launches = launches_of(record, labels, i);
        if (!launches.calls)
            continue;
        fputs(json_separator(&first), out);
        json_text(out, kernel_label(labels, i, &text));
        print_launches(out, &launches);
        fputs(", \"module\": ", out);
        print_text_or_null(out, record->kernel_names[i].module);
        fputs("}", out);
    }
    if (record->other_kernels.calls) {
        fprintf(out, "%s\"(others)\"", json_separator(&first));
        print_launches(out, &record->other_kernels);
        fputs(", \"module\": null}", out);
    }
    fputs("}", out);
}

/* ---- modules ---- */

static const char *const unshared_reasons[UNSHARED_REASONS] = {
    [UNSHARED_NOT] = "null",
    [UNSHARED_CACHE_OFF] = "\"MGPU_RT_CACHE=off\"",
    [UNSHARED_WRITABLE] = "\"writable globals\"",
    [UNSHARED_SETTABLE] = "\"constants that the program may set through HIP\"",
    [UNSHARED_OPAQUE] = "\"it may have writable globals, in parts that cannot be read\"",
};

static void print_module(FILE *out, const struct counts *record, const struct kernel_labels *labels,
                         size_t row) {
    const struct module_counter *module = &record->modules[row];
    const uint64_t hash = record->module_keys[row];
    struct kernel_text text;
    bool first = true;
    fprintf(out,
            "{\"image\": \"%016" PRIx64 "\", \"bytes\": %" PRIu64 ", \"loads\": %" PRIu64
            ", \"driver_loads\": %" PRIu64 ", \"kernels\": [",
            hash, module->bytes, module->loads, module->driver_loads);
    for (size_t i = 0; i < KERNELS; i++)
        if (record->kernel_keys[i] && record->kernel_names[i].image == hash) {
            fputs(json_separator(&first), out);
            json_text(out, kernel_label(labels, i, &text));
        }
    fputs("], \"name\": ", out);
    print_text_or_null(out, module->name);
    fprintf(out, ", \"why\": %s}",
            unshared_reasons[module->why < UNSHARED_REASONS ? module->why : UNSHARED_NOT]);
}

static void print_modules(FILE *out, const struct counts *record,
                          const struct kernel_labels *labels) {
    bool first = true;
    fputs(", \"modules\": [", out);
    for (size_t i = 0; i < MODULES; i++)
        if (record->modules[i].loads) {
            fputs(json_separator(&first), out);
            print_module(out, record, labels, i);
        }
    fputs("]", out);
}

/* ---- copies, caches, memory ---- */

static const char *const copy_ways[COPY_WAYS] = {[COPY_TO_DEVICE] = "to_device",
                                                 [COPY_FROM_DEVICE] = "from_device",
                                                 [COPY_ON_DEVICE] = "on_device",
                                                 [COPY_UNKNOWN] = "unknown",
                                                 [COPY_FILL] = "fill"};

static void print_copies(FILE *out, const struct counts *record) {
    bool first = true;
    fputs(", \"copies\": {", out);
    for (size_t i = 0; i < COPY_WAYS; i++) {
        fprintf(out, "%s\"%s\": ", json_separator(&first), copy_ways[i]);
        json_counts(out, copy_fields, (const uint64_t *)&record->copies[i]);
    }
    fputs("}", out);
}

static const char *const cache_names[CACHE_COUNT] = {
    [CACHE_MODULES] = "modules", [CACHE_FUNCTIONS] = "functions",
    [CACHE_STREAMS] = "streams", [CACHE_EVENTS] = "events",
    [CACHE_MEMORY] = "memory",   [CACHE_REGISTRATIONS] = "registrations"};

static void print_caches(FILE *out, const struct counts *record) {
    bool first = true;
    fputs(", \"cache\": {", out);
    for (size_t i = 0; i < CACHE_COUNT; i++) {
        fprintf(out, "%s\"%s\": ", json_separator(&first), cache_names[i]);
        json_counts(out, cache_fields, (const uint64_t *)&record->caches[i]);
    }
    fputs("}", out);
}

/* Prints how many bytes each site held when the program held the most memory on a device. */
static void print_peak(FILE *out, const struct counts *record, int device) {
    bool first = true;
    fputs("\"peak\": [", out);
    for (size_t i = 0; i <= SITES; i++) {
        const struct site_counter *site = &record->sites[i];
        const bool grows = load_relaxed(&record->site_grows[device]);
        const uint64_t bytes = load_relaxed(grows ? &site->bytes : &site->peak_bytes);
        if (!bytes || record->site_devices[i] != (uint64_t)device)
            continue;
        fprintf(out, "%s{\"symbol\": ", json_separator(&first));
        print_text_or_null(out, site->symbol);
        fputs(", \"file\": ", out);
        print_text_or_null(out, site->file);
        fprintf(out, ", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"blocks\": %" PRIu64 "}",
                site->offset, bytes, load_relaxed(grows ? &site->blocks : &site->peak_blocks));
    }
    fputs("]}", out);
}

/* Omits a device on which no block was requested. */
static void print_memory(FILE *out, const struct counts *record) {
    bool first = true;
    fputs(", \"memory\": {", out);
    for (int device = 0; device < MOST_DEVICES; device++) {
        const struct memory_account *counted = &record->memory[device];
        const struct memory_account account = record == &counts ? block_account(device) : *counted;
        if (!account.peak_reserved)
            continue;
        fprintf(out,
                "%s\"%d\": {\"allocated\": %zu, \"peak_allocated\": %zu, \"reserved\": %zu, "
                "\"peak_reserved\": %zu, \"blocks\": %" PRIu64 ", \"cached_blocks\": %" PRIu64 ", ",
                json_separator(&first), device, account.allocated, counted->peak_allocated,
                account.reserved, account.peak_reserved, account.blocks,
                account.blocks - account.live);
        print_peak(out, record, device);
    }
    fputs("}", out);
}

/* ---- all of it ---- */

/* Prints null if memory ran out. */
static void print_rendered(FILE *out, const struct counts *record) {
    char *text = NULL;
    size_t size;
    FILE *tables = open_memstream(&text, &size);
    if (tables)
        statistics_print_tables(tables, record);
    const bool is_whole = tables && fclose(tables) == 0;
    fputs(", \"rendered\": ", out);
    print_text_or_null(out, is_whole ? text : "");
    free(text);
}

static void print_counts(FILE *out, const struct counts *record) {
    struct kernel_labels labels;
    kernel_labels(&labels, record->kernel_names);
    print_start_and_device(out, &record->start);
    print_failed_calls(out, record);
    print_counters(out, "abi", record->abi, abi_names, ABI_COUNT);
    print_counters(out, "hip", record->hip, hip_names, HIP_COUNT);
    fprintf(out, ", \"overridden\": %" PRIu64, record->overridden);
    print_kernels(out, record, &labels);
    print_copies(out, record);
    print_modules(out, record, &labels);
    print_caches(out, record);
    fputs(", \"graphs\": ", out);
    json_counts(out, graph_fields, (const uint64_t *)&record->graphs);
    fputs(", \"kept\": ", out);
    json_counts(out, kept_fields, (const uint64_t *)&record->kept);
    fputs(", \"made\": ", out);
    json_counts(out, made_fields, (const uint64_t *)&record->made);
    print_memory(out, record);
    print_rendered(out, record);
}

static const char *const manager_states[] = {"none", "starting", "serving", "ended"};

static void print_own(FILE *out, const char *ended) {
    const struct process process = counts.process.id ? counts.process : process_now();
    fputs("{", out);
    print_process(out, &process, clock_ns(), ended);
    print_counts(out, &counts);
    fprintf(out, ", \"manager\": \"%s\"}", manager_states[manager_state()]);
}

void statistics_print(FILE *out) {
    print_own(out, "exit");
}

void statistics_print_record(FILE *out, const struct counts *record) {
    fputs("{", out);
    print_process(out, &record->process, record->last, "unfinished");
    print_counts(out, record);
    fputs("}", out);
}

char *statistics_json(void) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    print_own(out, "unfinished");
    return fclose(out) == 0 ? text : NULL;
}
