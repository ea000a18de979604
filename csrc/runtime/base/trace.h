/* MGPU_RT_TRACE: when each call of the program and of the driver was, as a Chrome trace, for
 * ui.perfetto.dev or chrome://tracing.
 *
 * Costs what statistics cost (about 80 ns a call, for the clock) and 40 bytes of memory a call.
 * Times are CLOCK_MONOTONIC's, so that the traces of several processes of a machine fit together.
 */
#ifndef MGPU_RT_TRACE_H
#define MGPU_RT_TRACE_H

#include <stdint.h>

/* Keeps a call; thread-safe, without a lock. `name` and `layer` ("program", "driver") have to live
 * on. Beyond the first million calls of a process nothing is kept, which the end of the trace says.
 */
void trace_call(const char *name, const char *layer, uint64_t begin, uint64_t nanoseconds);

/* Writes what was kept to the path, with %p as the process id. At most once a process. */
void trace_write(const char *path);

/* A child of fork has a trace of its own. */
void trace_reset(void);

#endif
