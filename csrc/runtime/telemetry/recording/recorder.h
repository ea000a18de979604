/* Records the details of each call (kernel, image, stream, direction of a copy), and opens
 * and completes the recording. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "telemetry/call.h"

/* Records that a call begins. */
void recorder_begins(struct call *call);
/* Records that the call has ended. */
void recorder_ended(const struct call *call, const void *result);

/* Counts a block that a function of mgpu_rt.h has given to the program (sign 1), or is about to
 * free (sign -1). */
void recorder_block(const void *address, int sign);

/* Opens the recording that MGPU_RT_STATS and MGPU_RT_TRACE name. Called at the first call of a
 * process, under start_lock. */
void recorder_open(void);

/* Records a part of HIP's start, which began at the clock_ns time `begin`. The start happens once
 * in a process, whether this library or other code calls HIP first, so no call's time includes it.
 */
void recorder_start(uint64_t begin, uint64_t nanoseconds);
/* Separates a forked child from the parent's recording, because all counts so far belong to the
 * parent. HIP does not work in such a child, so the child gets no recording. */
void recorder_leave(void);
/* Completes the recording when the process ends, and prints the table. Once. */
void recorder_close(void);

/* Prints the table of MGPU_RT_STATS=1 (statistics.c). */
void statistics_print_tables(void);

/* Replaces the functions in `hip` by functions that count and time each call (driver_calls.c). No
 * other code replaces functions in `hip`; hip_untimed keeps HIP's own functions. Called once, after
 * hip_install. */
void driver_calls_watch(void);

#endif
