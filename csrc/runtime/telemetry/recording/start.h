/* Times HIP's own start, which happens once in each process, whether this library or other code
 * calls HIP first. The start is timed separately, so that no call's time includes the start. */
#ifndef MGPU_RT_START_H
#define MGPU_RT_START_H

#include <stdint.h>

/* Records that hipInit was called at the clock_ns time `begin`. `version` is the result of
 * hipRuntimeGetVersion, or 0 if HIP reports no version. Under start_lock. */
void start_initialised(uint64_t begin, uint64_t nanoseconds, int version);

/* Initialises the current device, and records the device's name and the time of the initialisation.
 * Called once in a process, before the first call that uses a device. After driver_calls_watch. */
void start_device(void);

/* Copies the record of HIP's start into the counters and the trace. */
void start_record(void);

#endif
