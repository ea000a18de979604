#include "telemetry/recording/trace_json.h"
#include "atomics.h"
#include "driver/hip.h"
#include "telemetry/counters.h"
#include "telemetry/recording/json.h"
#include "telemetry/recording/kernel_label.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* The trace shows streams as rows of an artificial process, whose id Linux never uses. */
static int64_t streams_id(const struct process *process) {
    return process->id + (1 << 22);
}

/* ---- names ---- */

static void print_name(FILE *out, const char *what, int64_t process, uint32_t row,
                       const char *name) {
    fprintf(out,
            ",\n{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %" PRIu32
            ", \"args\": {\"name\": ",
            what, process, row);
    json_text(out, name);
    fputs("}}", out);
}

static void print_thread_names(FILE *out, const struct trace *trace) {
    for (size_t i = 0; i < TRACE_THREADS; i++)
        if (trace->thread_keys[i])
            print_name(out, "thread_name", trace->process.id, (uint32_t)trace->thread_keys[i],
                       trace->thread_names[i]);
}

static void print_stream_names(FILE *out, const struct process *process, int64_t id,
                               const char *what, const bool *used) {
    char name[sizeof process->program + 16];
    snprintf(name, sizeof name, "%s: %s", process->program, what);
    bool any = false;
    for (uint32_t stream = 0; stream < TRACE_NO_STREAM; stream++) {
        if (!used[stream])
            continue;
        if (!any)
            print_name(out, "process_name", id, 0, name);
        any = true;
        char row[24] = "null stream";
        if (stream)
            snprintf(row, sizeof row, "stream %" PRIu32, stream);
        print_name(out, "thread_name", id, stream, row);
    }
}

/* ---- events ---- */

static const char *const hows[CALL_HOWS] = {[CALL_HIT] = "hit",
                                            [CALL_MISS] = "miss",
                                            [CALL_BYPASS] = "bypass",
                                            [CALL_REFUSED] = "refused",
                                            [CALL_FAILED] = "failed"};

static const char *function_of(const struct trace_event *event) {
    if (event->kind == TRACE_PROGRAM)
        return event->function < ABI_COUNT ? abi_names[event->function] : "?";
    return event->function < HIP_COUNT ? hip_names[event->function] : "?";
}

/* Returns NULL if the call launches no kernel, or a kernel without a name. */
static const char *launched_kernel(const struct kernel_labels *labels,
                                   const struct trace_event *event, struct kernel_text *text) {
    const bool named = event->kind != TRACE_DRIVER && event->kernel < KERNELS;
    return named ? kernel_label(labels, event->kernel, text) : NULL;
}

/* kernel: NULL for no kernel. */
static void print_args(FILE *out, const struct trace_event *event, const char *kernel) {
    char error[HIP_ERROR_TEXT];
    bool first = true;
    fputs("\"args\": {", out);
    if (event->kind == TRACE_GRAPH) {
        fprintf(out, "%s\"nodes\": %" PRIu64, json_separator(&first), event->bytes);
    } else if (event->kind != TRACE_DRIVER) {
        if (kernel) {
            fprintf(out, "%s\"kernel\": ", json_separator(&first));
            json_text(out, kernel);
        }
        if (event->stream != TRACE_NO_STREAM)
            fprintf(out, "%s\"stream\": %u", json_separator(&first), event->stream);
        if (event->bytes)
            fprintf(out, "%s\"bytes\": %" PRIu64, json_separator(&first), event->bytes);
        if (event->detail > CALL_PLAIN && event->detail < CALL_HOWS)
            fprintf(out, "%s\"result\": \"%s\"", json_separator(&first), hows[event->detail]);
    }
    if (event->error) {
        fprintf(out, "%s\"error\": ", json_separator(&first));
        json_text(out, hip_error_text(event->error, error));
    }
    fputs("}", out);
}

/* A row of the trace: a thread of the process, or a stream. */
struct place {
    const char *name, *category, *kernel;
    int64_t process;
    uint32_t row;
};

/* Chrome's unit of time is the microsecond. */
static void print_event(FILE *out, const struct trace_event *event, const struct place *place) {
    fputs(",\n{\"ph\": \"X\", \"name\": ", out);
    json_text(out, place->name);
    fprintf(out,
            ", \"cat\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %" PRIu32 ", \"ts\": %" PRIu64
            ".%03u, \"dur\": %" PRIu64 ".%03u, ",
            place->category, place->process, place->row, event->begin / 1000,
            (unsigned)(event->begin % 1000), event->nanoseconds / 1000,
            (unsigned)(event->nanoseconds % 1000));
    print_args(out, event, place->kernel);
    fputs("}", out);
}

static void print_memory_event(FILE *out, int64_t process, const struct trace_event *event) {
    fprintf(out,
            ",\n{\"ph\": \"C\", \"name\": \"device memory\", \"pid\": %" PRId64 ", \"tid\": 0, ",
            process);
    if (event->function)
        fprintf(out, "\"id\": \"%u\", ", event->function);
    fprintf(out,
            "\"ts\": %" PRIu64 ".%03u, \"args\": {\"allocated\": %" PRIu64 ", \"cached\": %" PRIu64
            "}}",
            event->begin / 1000, (unsigned)(event->begin % 1000), event->nanoseconds, event->bytes);
}

/* Returns whether an event is a call that submits work to a stream or waits for a stream. */
static bool is_work(const struct trace_event *event) {
    switch ((enum abi_index)event->function) {
    case ABI_mgpuLaunchKernel:
    case ABI_mgpuLaunchKernelCooperative:
    case ABI_mgpuLaunchClusterKernel:
    case ABI_mgpuLaunchKernelRT:
    case ABI_mgpuMemcpy:
    case ABI_mgpuMemset16:
    case ABI_mgpuMemset32:
    case ABI_mgpuEventRecord:
    case ABI_mgpuStreamWaitEvent:
    case ABI_mgpuStreamSynchronize:
        return event->kind == TRACE_PROGRAM && event->stream != TRACE_NO_STREAM;
    default:
        return false;
    }
}

static void print_one(FILE *out, const struct trace *trace, const struct kernel_labels *labels,
                      const struct trace_event *event) {
    struct kernel_text text;
    const char *kernel = launched_kernel(labels, event, &text);
    const char *work = kernel ? kernel : function_of(event);
    struct place place = {function_of(event), "driver", kernel, trace->process.id, event->thread};
    switch ((enum trace_kind)event->kind) {
    case TRACE_MEMORY:
        print_memory_event(out, trace->process.id, event);
        return;
    case TRACE_START:
        place.name = "HIP's start";
        place.category = "start";
        break;
    case TRACE_GRAPH:
        place.name = place.category = "graph";
        break;
    case TRACE_PROGRAM:
        place.category = "program";
        break;
    case TRACE_DRIVER:
        break;
    }
    print_event(out, event, &place);
    if (is_work(event))
        print_event(
            out, event,
            &(struct place){work, "stream", kernel, streams_id(&trace->process), event->stream});
}

/* The streams that have events. Only streams with events get rows in the trace. */
struct rows {
    bool streams[TRACE_NO_STREAM];
};

static void note_row(struct rows *rows, const struct trace_event *event) {
    if (is_work(event))
        rows->streams[event->stream] = true;
}

static void print_rows(FILE *out, const struct process *process, const struct rows *rows) {
    print_stream_names(out, process, streams_id(process), "streams", rows->streams);
}

/* Prints the completely written events, in their order. */
static struct trace_kept print_events(FILE *out, const struct trace *trace) {
    const uint64_t end = load_acquire(&trace->next);
    const uint64_t begin = end > TRACE_EVENTS ? end - TRACE_EVENTS : 0;
    struct rows *rows = calloc(1, sizeof *rows);
    struct kernel_labels labels;
    kernel_labels(&labels, trace->kernel_names);
    struct trace_kept kept = {0, (size_t)begin};
    for (uint64_t number = begin; number < end; number++) {
        const struct trace_event *event = &trace->events[number % TRACE_EVENTS];
        if (load_acquire(&event->number) != number + 1) {
            kept.lost++;
            continue;
        }
        print_one(out, trace, &labels, event);
        if (rows)
            note_row(rows, event);
        kept.events++;
    }
    if (rows)
        print_rows(out, &trace->process, rows);
    free(rows);
    return kept;
}

struct trace_kept trace_print(FILE *out, const struct trace *trace, const char *ended) {
    fprintf(out,
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"ph\": \"M\", \"name\": "
            "\"process_name\", \"pid\": %" PRId64 ", \"tid\": 0, \"args\": {\"name\": ",
            trace->process.id);
    json_text(out, trace->process.program);
    fputs("}}", out);
    print_thread_names(out, trace);
    const struct trace_kept kept = print_events(out, trace);
    fprintf(out, "\n], \"otherData\": {\"kept\": %zu, \"lost\": %zu, \"ended\": \"%s\"}}\n",
            kept.events, kept.lost, ended);
    return kept;
}
