/* MGPU_RT_TRACE_GPU: when the GPU did what was submitted, as rows of the trace.
 *
 * Two timed events of HIP's are put around each launch, copy and fill. They are read when their
 * place in a ring is wanted again, and at the end. Nobody waits for one, but for the first of a
 * device, by which the device's clock is matched to the host's. */
#ifndef MGPU_RT_GPU_TIMES_H
#define MGPU_RT_GPU_TIMES_H

/* From now on what is submitted through `hip` is timed. Once, after hip_time_calls. */
void gpu_times_open(void);
/* The process ends, and HIP is there still: reads what is done, and gives the events back. */
void gpu_times_close(void);

/* Forgets its events with what the caches forget. */
struct cache;
extern const struct cache gpu_times_cache;

#endif
