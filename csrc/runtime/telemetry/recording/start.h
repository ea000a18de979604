/* HIP's own start: each process pays it once, also if other code calls HIP first. The start is
 * timed by itself, so that no call of the program has it in its time, with a cache or without. */
#ifndef MGPU_RT_START_H
#define MGPU_RT_START_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that hipInit was called at `begin`, a time of clock_ns; `version` is
 * hipRuntimeGetVersion's, 0 if HIP does not tell. Under start_lock. */
void start_initialised(uint64_t begin, uint64_t nanoseconds, int version);

/* Makes the current device ready and notes which one it is. Called once in a process, before the
 * first call that uses a device. After driver_calls_watch. */
void start_device(void);

/* Puts these notes into the counters and the trace. `forked`: HIP has started in the parent. */
void start_record(bool forked);

#endif
