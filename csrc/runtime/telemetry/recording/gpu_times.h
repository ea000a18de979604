/* MGPU_RT_TRACE=gpu,PATH: when the GPU ran the submitted work, as rows of the trace.
 *
 * Two timed events of HIP stand around each launch, copy and fill. The library reads the events
 * when their place in a ring is wanted again, and at the end. The library waits only for a device's
 * first event, by which the device's clock is matched to the host's. */
#ifndef MGPU_RT_GPU_TIMES_H
#define MGPU_RT_GPU_TIMES_H

#include "telemetry/counters.h"

struct work;

/* Records an event before HIP gets the work. `kernel` is the row of a launched kernel; for a copy
 * or a fill it is TRACE_NO_KERNEL, and `bytes` counts. Returns NULL if the work cannot be timed. */
struct work *gpu_times_before(enum hip_index function, hipStream_t stream, size_t kernel,
                              uint64_t bytes);
/* Records an event after the work, unless `error` tells that HIP refused it. Returns `error`. */
hipError_t gpu_times_after(struct work *work, hipStream_t stream, hipError_t error);

/* Reads the times that are done, and has HIP destroy the events, as the process ends while HIP
 * still works. */
void gpu_times_close(void);

/* Invalidates the device's events with the other caches. */
struct cache;
extern const struct cache gpu_times_cache;

#endif
