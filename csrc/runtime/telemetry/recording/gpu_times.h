/* MGPU_RT_TRACE=gpu,PATH: the trace has rows that show when the GPU ran the submitted work.
 *
 * Each launch, copy and fill is enclosed by two timed events of HIP. The library reads the events
 * when their place in a ring is needed again, and at the end. The library waits only for a device's
 * first event, which relates the device's clock to the host's. */
#ifndef MGPU_RT_GPU_TIMES_H
#define MGPU_RT_GPU_TIMES_H

#include "telemetry/counters.h"

struct work;

/* Records an event before HIP gets the work. `kernel` is the row of a launched kernel; for a copy
 * or a fill it is TRACE_NO_KERNEL, and `bytes` is used. Returns NULL if the work cannot be timed.
 */
struct work *gpu_times_before(enum hip_index function, hipStream_t stream, size_t kernel,
                              uint64_t bytes);
/* Records an event after the work, unless `error` shows that HIP refused the work. Returns `error`.
 */
hipError_t gpu_times_after(struct work *work, hipStream_t stream, hipError_t error);

/* Reads the available times, and calls HIP to destroy the events; called at the end of the process,
 * while HIP still works. */
void gpu_times_close(void);

/* Invalidates the device's events together with the other caches. */
struct cache;
extern const struct cache gpu_times_cache;

#endif
