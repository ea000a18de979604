/* Details of each call (kernel, image, stream, direction of a copy) and the output files. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "telemetry/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes that a call begins; it is counted now. */
void recorder_begins(struct call *call);
/* Notes that the call has ended. */
void recorder_ended(const struct call *call, const void *result);

/* Returns the row of a kernel in the counters, by HIP's handle; KERNELS if it has none. */
size_t recorder_kernel(const void *handle);
/* Returns a stream's number, in the order in which they were first seen. The null stream is 0, and
 * a stream without room is TRACE_NO_STREAM. */
uint16_t recorder_stream(hipStream_t stream);

/* Counts the memory that a function of mgpu_rt.h has given to the program, or taken back. */
void recorder_memory(void);

/* Opens the files that MGPU_RT_STATS and MGPU_RT_TRACE name. Called at the first call of a process,
 * under start_lock. */
void recorder_open(bool forked);
/* Leaves the recording to the parent, in a child of fork: all counts so far are the parent's. */
void recorder_leave(void);
/* Writes the table and the files as the process ends. Once. */
void recorder_close(void);

#endif
