/* MGPU_RT_TRACE=markers: each launch is a range of rocTX's, which AMD's
 * profilers show beside what the GPU does. The range has the kernel's name, after that of its
 * gpu.module: "kernels::softmax". */
#ifndef MGPU_RT_MARKERS_H
#define MGPU_RT_MARKERS_H

#include "telemetry/counters.h"

#include <stdbool.h>

/* Finds the library of the ranges, if markers are asked for. Called at the first call of a process,
 * under start_lock. */
void markers_open(void);

/* Begins a range with the name of a kernel; returns false if no profiler sees ranges. */
bool marker_begins(const struct kernel_name *kernel);
/* Ends the last range of the thread. */
void marker_ended(void);

#endif
