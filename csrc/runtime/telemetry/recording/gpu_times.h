/* MGPU_RT_TRACE=gpu,PATH: the trace has rows that show when the GPU ran the submitted work.
 *
 * The library records a timed event of HIP before and after each launch, copy and fill. A ring
 * holds the events. The library reads the times of old events before it reuses their place in the
 * ring, and at the end of the process. The library waits only for a device's first event, which
 * relates the device's clock to the host's. */
#ifndef MGPU_RT_GPU_TIMES_H
#define MGPU_RT_GPU_TIMES_H

#include "telemetry/counters.h"

struct work;

/* Records an event before HIP gets the work. `kernel` is the row of a launched kernel. For a copy
 * or a fill, `kernel` is TRACE_NO_KERNEL and `bytes` is the size. Returns NULL if the work cannot
 * be timed. */
struct work *gpu_times_before(enum hip_index function, hipStream_t stream, size_t kernel,
                              uint64_t bytes);
/* Records an event after the work, unless `error` shows that HIP refused the work. Returns `error`.
 */
hipError_t gpu_times_after(struct work *work, hipStream_t stream, hipError_t error);

/* Reads the available times, and calls HIP to destroy the events; called at the end of the process,
 * while HIP still works. */
void gpu_times_close(void);

/* The entry in the table of caches: a reset of a device also invalidates the device's timed
 * events. */
struct cache;
extern const struct cache gpu_times_cache;

#endif
