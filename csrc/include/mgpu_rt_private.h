/* The functions for mgpu_rt's own Python, for mgpu-rt-probe and for the tests.
 *
 * This header is not installed: a release may change it. All functions are thread-safe, as in
 * mgpu_rt.h. */
#ifndef MGPU_RT_PRIVATE_H
#define MGPU_RT_PRIVATE_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* Returns the JSON of mgpu_rt_stats_json, or a trace's, from the recording at a path. MGPU_RT_STATS
 * or MGPU_RT_TRACE has left that recording of a process that did not end by exit. The caller frees
 * the text with free(). Returns NULL with errno, which is EBADMSG if it is no whole recording of
 * this version.
 */
char *mgpu_rt_recording_json(const char *path);

/* Returns the hash of an image, and the label that tells its kernels from kernels of that name in
 * others, as statistics show it. The name of the image's gpu.module goes to `name`, cut off at
 * `size` bytes with its 0. The symbol table of the image's file has that name for the constant that
 * holds the image. The name is "" if it is not known. Returns the hash of the image; 0 if its size
 * is not known. Reads the file, which takes milliseconds. */
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);

/* Returns the path of the HIP library that this library uses; "" before the first call, or if there
 * is none. */
const char *mgpu_rt_hip_path(void);

/* Returns the flags with which mgpuEventCreate makes events: hipEventDisableTiming (2), or
 * hipEventDefault (0) once the process asks for the time between events. A process asks if an
 * object of it imports mgpuEventElapsedTime or has its own, or if it has called this library's. */
unsigned mgpu_rt_event_flags(void);

/* Returns the HIP libraries of this machine in the order in which the first call tries them. The
 * first call tries none if the process has one or MGPU_RT_HIP names one. Each line has the way it
 * was found, a tab, and its path. Opens none. The caller frees the path with free(). Returns NULL
 * if memory ran out. */
char *mgpu_rt_find_hip(void);

/* Returns a number for the present life of the current device's handles and memory. */
unsigned long long mgpu_rt_epoch(void);

/* Returns 1 while handles and memory from the time of such a number exist. Returns 0 once a reset
 * of their device has invalidated them: HIP may have handed them out again. */
int mgpu_rt_epoch_lasts(unsigned long long epoch);

/* ---- lines for Python's logging ----
 *
 * One thread of a Python program asks for the lines that the library would write to stderr. */

/* Begins that. `holds_gil` is PyGILState_Check: lines of threads that hold the GIL still go to
 * stderr. A line that the thread has not taken after so many milliseconds goes there, too. Returns
 * 1; or 0 if another thread already asks. */
int mgpu_rt_lines_begin(int (*holds_gil)(void), int patience_ms);

/* Waits for the next line and copies it with its 0 to `line`, cut off at `size` bytes. `logged`
 * tells whether Python has logged the line before: if not, that line goes to stderr now. Returns
 * the line's level, as Python's logging numbers it; 0 at the end. */
int mgpu_rt_lines_next(int logged, char *line, size_t size);

/* Ends the logging: from here on lines go to stderr. */
void mgpu_rt_lines_end(void);

#pragma GCC visibility pop

#endif
