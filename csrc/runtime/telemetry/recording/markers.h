/* MGPU_RT_TRACE=markers: each launch is a range of rocTX, which AMD's profilers show beside the
 * GPU's work. The range is named after the kernel. */
#ifndef MGPU_RT_MARKERS_H
#define MGPU_RT_MARKERS_H

#include <stdbool.h>

/* Finds the library for ranges, if MGPU_RT_TRACE asks for markers. Several threads may call this
 * function at once, at the first calls of a process. The caller must not hold a lock, because this
 * function waits for the loader's lock. */
void markers_open(void);

/* Begins a range with the name of a kernel; returns false if no profiler records ranges. */
bool marker_begins(const char *name);
/* Ends the last range of the thread. */
void marker_ended(void);

#endif
