/* All that is kept of a call beside its count and its time, and the files that hold it. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "telemetry/call.h"

#include <stdbool.h>
#include <stdint.h>

/* A call begins, which is counted then. */
void recorder_begins(struct call *call);
/* It has ended. result: what it returns; NULL if nothing. */
void recorder_ended(const struct call *call, const void *result);

/* The row of a kernel in the counters, by HIP's handle; KERNELS if it has none. */
size_t recorder_kernel(const void *handle);
/* A stream's number, in the order in which they were first seen. The null stream is 0, and one for
 * which there is no room is TRACE_NO_STREAM. */
uint16_t recorder_stream(hipStream_t stream);

/* Counts the memory that a function of mgpu_rt.h has given to the program, or taken back. */
void recorder_memory(void);

/* Opens the files that MGPU_RT_STATS and MGPU_RT_TRACE name. At the first call of a process, under
 * start_lock. */
void recorder_open(bool forked);
/* A child of fork: what was counted is the parent's. */
void recorder_leave(void);
/* The process ends: writes the table and the files. Once. */
void recorder_close(void);

#endif
