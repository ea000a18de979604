/* MGPU_RT_TRACE: the time of each call by the program and of each call to the driver, for
 * ui.perfetto.dev.
 *
 * A trace costs as much time as statistics: about 80 ns for each call, to read the clock. A
 * recording with a trace contains the newest events, in a ring of 64 MiB. Times are those of
 * CLOCK_MONOTONIC, so that traces of several processes on one machine have the same time axis. */
#ifndef MGPU_RT_TRACE_H
#define MGPU_RT_TRACE_H

#include "telemetry/counters.h"

/* record_head.c has the names. */
enum trace_kind {
    TRACE_PROGRAM, /* a call by the program: `function` is an abi_index, and `detail` is an enum
                    * call_how */
    TRACE_DRIVER,  /* a call to the driver: `function` is a hip_index */
    TRACE_START,   /* HIP's start */
    TRACE_GRAPH,   /* a launch of a graph; `bytes` is the graph's number of nodes */
    TRACE_MEMORY,  /* `function` is the device, `nanoseconds` is the number of allocated bytes, and
                    * `bytes` is the number of cached bytes */
    TRACE_POINTER, /* an address that the thread's next call passes: an argument of a kernel, or the
                    * end of a copy. `function` and `kernel` are those of the call. Written before
                    * the call, so that a call that a fault interrupts has its pointers */
    TRACE_KINDS
};

#define TRACE_NO_STREAM UINT64_MAX
enum { TRACE_NO_KERNEL = UINT16_MAX };

/* The fields' format is that of counters.h. */
#define EVENT_FIELDS(F, G)                                                                         \
    F(G, uint64_t, number, ) /* counted from 1; 0: incompletely written */                         \
    F(G, uint64_t, begin, )                                                                        \
    F(G, uint64_t, nanoseconds, )                                                                  \
    F(G, uint64_t, bytes, )                                                                        \
    F(G, uint64_t, address, ) /* of the block or of registered memory, or the pointer */           \
    F(G, uint64_t, stream, )  /* HIP's handle; 0: the null stream, or it says nothing */           \
    F(G, uint32_t, thread, )                                                                       \
    F(G, uint16_t, kind, )                                                                         \
    F(G, uint16_t, function, )                                                                     \
    F(G, uint16_t, kernel, )                                                                       \
    F(G, uint16_t, detail, )                                                                       \
    F(G, uint16_t, error, ) /* HIP's error number, if the call failed */                           \
    F(G, uint16_t, place, ) /* where memory began: 1 + the row of the place; 0: unknown */
RECORD_STRUCT(trace_event, EVENT_FIELDS);

enum { TRACE_EVENTS = 1 << 20, PLACES = 256 };

struct trace {
#define RECORD_TRACE
#define MANY(name, type, count, fields) type name[count];
#define VALUE(name) uint64_t name;
#include "telemetry/record.def"
};

/* NULL if nothing is traced. */
extern struct trace *trace_now;

static inline bool trace_on(void) {
    return trace_now != NULL;
}

/* Adds an event of the calling thread; thread-safe, without a lock. The caller has checked
 * trace_on. A new event replaces the oldest one. */
void trace_add(const struct trace_event *event);

/* Returns 1 + the row of a place in the program's code; 0 if the table has no space for it. The
 * caller has checked trace_on. */
uint16_t trace_place(const void *address);

/* Makes trace_add record all later events in `trace`, whose pages must be new. If `trace` is NULL,
 * tracing is off, as in a forked child. */
void trace_into(struct trace *trace);

#endif
