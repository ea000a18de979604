/* The functions for the Python of mgpu_rt itself, for mgpu-rt-probe and for the tests.
 *
 * Not installed: a release may change it. Thread-safe, as mgpu_rt.h. */
#ifndef MGPU_RT_PRIVATE_H
#define MGPU_RT_PRIVATE_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* Returns the JSON of mgpu_rt_stats_json, or a trace's, from the recording at a path. MGPU_RT_STATS
 * or MGPU_RT_TRACE has left it of a process that was ended otherwise than by exit. The caller frees
 * it with free(). NULL with errno, which is EBADMSG if it is no whole recording of this version's.
 */
char *mgpu_rt_recording_json(const char *path);

/* Returns the label that tells kernels of this image from kernels of their name in others, as
 * statistics show it. The gpu.module that the image was made of goes to `name`, cut off at `size`
 * bytes with its 0. It is the name of the constant that the image lies in, in the symbol table of
 * its file. "" if that is not known. Returns the hash of the image; 0 if its size is not known.
 * Reads the file: milliseconds. */
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);

/* Returns the path of the HIP library that the library drives; "" before the first call, or if
 * there is none. */
const char *mgpu_rt_hip_path(void);

/* Returns the flags with which mgpuEventCreate makes events: hipEventDisableTiming (2), or
 * hipEventDefault (0) once the process asks for the time between events. It does so if an object of
 * it imports mgpuEventElapsedTime or has one of its own, or if it has called this library's. */
unsigned mgpu_rt_event_flags(void);

/* Returns the HIP libraries of this machine in the order in which the first call tries them. It
 * tries none if the process has one or MGPU_RT_HIP names one. A line each: how it was found, a tab,
 * its path. Opens none. The caller frees it with free(). NULL if memory ran out. */
char *mgpu_rt_find_hip(void);

/* Returns a number for what the current device holds now: for its handles and memory. */
unsigned long long mgpu_rt_epoch(void);

/* Returns 1 while handles and memory from the time of such a number exist. Returns 0 once a reset
 * of their device has taken them: HIP may have handed them out again. */
int mgpu_rt_epoch_lasts(unsigned long long epoch);

/* ---- lines for Python's logging ----
 *
 * One thread of a Python program asks for the lines that the library would write to stderr. */

/* Begins that. `holds_gil` is PyGILState_Check: lines of threads that hold the GIL still go to
 * stderr. So does a line that the thread has not taken after so many milliseconds. Returns 1; 0 if
 * a thread asks already. */
int mgpu_rt_lines_begin(int (*holds_gil)(void), int patience_ms);

/* Waits for the next line and copies it with its 0 to `line`, cut off at `size` bytes. `logged`
 * says of the line before whether Python has logged it: if not, it goes to stderr now. Returns the
 * line's level, as Python's logging numbers it; 0 at the end. */
int mgpu_rt_lines_next(int logged, char *line, size_t size);

/* Ends that: from here on lines go to stderr. */
void mgpu_rt_lines_end(void);

#pragma GCC visibility pop

#endif
