/* Counts and times this library's calls to HIP. */
#ifndef MGPU_RT_DRIVER_CALLS_H
#define MGPU_RT_DRIVER_CALLS_H

#include <stdbool.h>

/* Replaces the functions in `hip` by functions that count and time each call (MGPU_RT_STATS,
 * MGPU_RT_TRACE). No other code replaces functions in `hip`; hip_untimed keeps HIP's own functions.
 * If `gpu` is set, a call that submits work also records an event before the work and an event
 * after the work (gpu_times.h). The measured time excludes the recording of the events. Called
 * once, after hip_install. */
void driver_calls_watch(bool gpu);

#endif
