/* Counts and times this library's calls to HIP. */
#ifndef MGPU_RT_DRIVER_CALLS_H
#define MGPU_RT_DRIVER_CALLS_H

#include <stdbool.h>

/* Installs the only layer of patches on HIP's table (MGPU_RT_STATS, MGPU_RT_TRACE); hip_untimed has
 * the unpatched functions. A call that submits work records its first event (gpu_times.h, if
 * `gpu`), starts the clock, calls HIP, stops the clock, and records its last event. Called once,
 * after hip_install. */
void driver_calls_watch(bool gpu);

#endif
