/* MGPU_RT_TRACE: the time of each call by the program and of each call to the driver; trace_json.c
 * writes these times for ui.perfetto.dev.
 *
 * A trace costs as much time as statistics: about 80 ns for each call, to read the clock. The
 * trace's file contains the newest events, in a ring of 48 MiB. Times are those of CLOCK_MONOTONIC,
 * so that traces of several processes on one machine have the same time axis. */
#ifndef MGPU_RT_TRACE_H
#define MGPU_RT_TRACE_H

#include "telemetry/counters.h"

#include <stdbool.h>
#include <stdint.h>

enum trace_kind {
    TRACE_PROGRAM, /* a call by the program: `function` is an abi_index, and `detail` is an enum
                    * call_how */
    TRACE_DRIVER,  /* a call to the driver: `function` is a hip_index */
    TRACE_START,   /* HIP's start */
    TRACE_GRAPH,   /* a launch of a graph; `bytes` is the graph's number of nodes */
    TRACE_MEMORY,  /* `function` is the device, `nanoseconds` is the number of allocated bytes, and
                    * `bytes` is the number of cached bytes */
};

enum { TRACE_NO_STREAM = UINT16_MAX, TRACE_NO_KERNEL = UINT16_MAX };

struct trace_event {
    uint64_t number; /* counted from 1; 0: incompletely written */
    uint64_t begin, nanoseconds, bytes;
    uint32_t thread;
    uint16_t kind, function;
    uint16_t kernel, stream, detail, error; /* HIP's error number, if the call failed */
};

enum { TRACE_EVENTS = 1 << 20, TRACE_THREADS = 1024, TRACE_NAME = 16 };

struct trace {
    struct process process;
    uint64_t next; /* number of events so far */
    uint64_t thread_keys[TRACE_THREADS];
    char thread_names[TRACE_THREADS][TRACE_NAME];
    struct kernel_name kernel_names[KERNELS];
    struct trace_event events[TRACE_EVENTS];
} __attribute__((aligned(COUNT_PAGE)));

/* NULL if nothing is traced. */
extern struct trace *trace_now;

static inline bool trace_on(void) {
    return trace_now != NULL;
}

/* Adds an event of the calling thread; thread-safe, without a lock. The caller has checked
 * trace_on. A new event replaces the oldest one. */
void trace_add(const struct trace_event *event);

/* Makes trace_add record all later events in `trace`, whose pages must be new. If `trace` is NULL,
 * tracing is off, as in a forked child. */
void trace_into(struct trace *trace);

#endif
