/* MGPU_RT_TRACE=markers: each launch is a range of rocTX, which AMD's profilers show beside the
 * GPU's work. The range is named after the gpu.module and the kernel: "kernels::softmax". */
#ifndef MGPU_RT_MARKERS_H
#define MGPU_RT_MARKERS_H

#include "telemetry/counters.h"

#include <stdbool.h>

/* Finds the library for ranges, if MGPU_RT_TRACE asks for markers. Several threads may call this
 * function at once, at the first calls of a process. The caller must not hold a lock, because this
 * function waits for the loader's lock. */
void markers_open(void);

/* Writes a kernel's name with its gpu.module into `text`, and returns `text`. */
enum { MARKER_TEXT = sizeof(struct kernel_name) };
const char *marker_text(const struct kernel_name *kernel, char text[MARKER_TEXT]);

/* Begins a range with the name of a kernel; returns false if no profiler records ranges. */
bool marker_begins(const struct kernel_name *kernel);
/* Ends the last range of the thread. */
void marker_ended(void);

#endif
