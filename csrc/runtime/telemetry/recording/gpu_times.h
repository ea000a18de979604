/* MGPU_RT_TRACE=gpu,PATH: when the GPU did what was submitted, as rows of the trace.
 *
 * Two timed events of HIP's are put around each launch, copy and fill. They are read when their
 * place in a ring is wanted again, and at the end. Nobody waits for one, but for the first of a
 * device, by which the device's clock is matched to the host's. */
#ifndef MGPU_RT_GPU_TIMES_H
#define MGPU_RT_GPU_TIMES_H

#include "telemetry/counters.h"

struct work;

/* Records an event before work that HIP is about to be given. `kernel` is the row of a launched
 * kernel; for a copy or a fill it is TRACE_NO_KERNEL, and `bytes` counts. NULL if the work cannot
 * be timed. */
struct work *gpu_times_before(enum hip_index function, hipStream_t stream, size_t kernel,
                              uint64_t bytes);
/* Records an event behind the work, unless `error` says that HIP refused the work. Returns `error`.
 * */
hipError_t gpu_times_after(struct work *work, hipStream_t stream, hipError_t error);

/* Reads the times that are done, and gives the events back: the process ends, and HIP is there
 * still. */
void gpu_times_close(void);

/* Invalidates its events with the other caches. */
struct cache;
extern const struct cache gpu_times_cache;

#endif
