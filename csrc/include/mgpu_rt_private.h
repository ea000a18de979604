/* The functions for mgpu_rt's own Python, for mgpu-rt-probe and for the tests.
 *
 * This header is not installed: a release may change it. All functions are thread-safe, as in
 * mgpu_rt.h. */
#ifndef MGPU_RT_PRIVATE_H
#define MGPU_RT_PRIVATE_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* Returns the JSON of mgpu_rt_stats_json, or of a trace, from the recording at a path. A process
 * with MGPU_RT_STATS or MGPU_RT_TRACE leaves such a recording if it does not end by exit. The
 * caller frees the text with free(). Returns NULL and sets errno: EBADMSG if the file is no
 * complete recording of this version.
 */
char *mgpu_rt_recording_json(const char *path);

/* Returns the hash of an image, and the label that distinguishes its kernels from others of one
 * name, as statistics show it. Copies the name of the image's gpu.module to `name`, cut off at
 * `size` bytes including its 0. The name comes from the symbol table of the image's file, where it
 * names the constant that contains the image. An unknown name is "". Returns the hash of the image;
 * 0 if the image's size is unknown. Reads the image's file, which takes milliseconds. */
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);

/* Returns the path of the HIP library that this library uses; "" before the first call, or if none
 * was found. */
const char *mgpu_rt_hip_path(void);

/* Returns the flags with which mgpuEventCreate creates events: hipEventDisableTiming (2), or
 * hipEventDefault (0) once the process asks for the time between events. A process asks for times
 * if an object of it imports or defines mgpuEventElapsedTime, or if it has called this library's
 * function. */
unsigned mgpu_rt_event_flags(void);

/* Returns the HIP libraries of this machine in the order in which the first call tries them. The
 * first call tries none of them if the process has opened one or MGPU_RT_HIP names one. Each line
 * contains the way in which the library was found, a tab, and its path. Opens none. The caller
 * frees the text with free(). Returns NULL if memory ran out. */
char *mgpu_rt_find_hip(void);

/* Returns a number for the time until the current device's next reset, which ends its handles and
 * memory. */
unsigned long long mgpu_rt_epoch(void);

/* Returns 1 while handles and memory from the time with this number are valid. Returns 0 once a
 * reset of the device has invalidated them: HIP may have reused their addresses. */
int mgpu_rt_epoch_lasts(unsigned long long epoch);

/* ---- lines for Python's logging ----
 *
 * One thread of a Python program requests the lines that the library would write to stderr. */

/* Begins that. `holds_gil` is PyGILState_Check: lines of threads that hold the GIL still go to
 * stderr. Also, a line that the thread has not taken after `patience_ms` milliseconds goes to
 * stderr. Returns 1; or 0 if another thread already requests lines. */
int mgpu_rt_lines_begin(int (*holds_gil)(void), int patience_ms);

/* Waits for the next line and copies it with its 0 to `line`, cut off at `size` bytes. `logged`
 * tells whether Python has logged the previous line: if not, that line goes to stderr now. Returns
 * the line's level, as Python's logging numbers it; 0 at the end. */
int mgpu_rt_lines_next(int logged, char *line, size_t size);

/* Ends the logging: from now on lines go to stderr. */
void mgpu_rt_lines_end(void);

#pragma GCC visibility pop

#endif
