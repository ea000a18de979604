/* Counts and times this library's calls to HIP. */
#ifndef MGPU_RT_DRIVER_CALLS_H
#define MGPU_RT_DRIVER_CALLS_H

/* Replaces the functions in `hip` by functions that count and time each call (MGPU_RT_STATS,
 * MGPU_RT_TRACE). No other code replaces functions in `hip`; hip_untimed keeps HIP's own functions.
 * Called once, after hip_install. */
void driver_calls_watch(void);

#endif
