/* Details of each call (kernel, image, stream, direction of a copy) and the output files. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "telemetry/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Records that a call begins. */
void recorder_begins(struct call *call);
/* Records that the call has ended. */
void recorder_ended(const struct call *call, const void *result);

/* Returns the row of a kernel in the counters, by HIP's handle; KERNELS if the kernel has no row.
 */
size_t recorder_kernel(const void *handle);
/* Returns a stream's number, in the order in which streams were first used. The null stream is 0,
 * and a stream for which there is no space is TRACE_NO_STREAM. */
uint16_t recorder_stream(hipStream_t stream);

/* Counts the memory that a function of mgpu_rt.h has given to the program, or taken back. */
void recorder_memory(void);

/* Opens the files that MGPU_RT_STATS and MGPU_RT_TRACE name. Called at the first call of a process,
 * under start_lock. */
void recorder_open(bool forked);
/* Leaves the recording to the parent: in a forked child, all counts so far belong to the parent. */
void recorder_leave(void);
/* Writes the table and the files when the process ends. Once. */
void recorder_close(void);

#endif
