/* Records the details of each call (kernel, image, stream, direction of a copy), and opens
 * and completes the recording. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "modules/image/image.h"
#include "telemetry/counters.h"

/* Records that a call begins. */
void recorder_begins(struct call *call);
/* Records that the call has ended. */
void recorder_ended(const struct call *call, const void *result);

/* Counts a block that a function of mgpu_rt.h has given to the program (sign 1), or is about to
 * free (sign -1). */
void recorder_block(const void *address, int sign);

/* Opens the recording that MGPU_RT_STATS and MGPU_RT_TRACE name. HIP's start began at
 * the clock_ns time `begin`; 0: no HIP was started. Called at the first call of a process, under
 * start_lock. */
void recorder_open(uint64_t begin);

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

/* ---- markers.c ----
 *
 * MGPU_RT_TRACE=markers: each launch is a range of rocTX, which AMD's profilers show beside the
 * GPU's work. The range is named after the kernel. */

/* Finds the library for ranges, if MGPU_RT_TRACE asks for markers. Several threads may call this
 * function at once, at the first calls of a process. The caller must not hold a lock, because this
 * function waits for the loader's lock. */
void markers_open(void);

/* Begins a range with the name of a kernel; returns false if no profiler records ranges. */
bool marker_begins(const char *name);
/* Ends the last range of the thread. */
void marker_ended(void);

/* ---- faults.c ----
 *
 * Records what explains a memory fault: the addresses that calls pass, and the address of a fault.
 * `mgpu-rt stats --address` finds the block. */

/* Notes which arguments of the kernels of an image may be pointers. */
void faults_know_image(const struct image *image);
/* Notes which arguments of a kernel may be pointers, over NVIDIA's driver, whose images do not
 * tell. `key` is the kernel's key in the counters. */
void faults_know_kernel(hipFunction_t kernel, uint64_t key);

/* Returns whether a function begins the life of memory (an allocation, a registration) or ends it
 * (a free, an unregister). */
enum memory_life { MEMORY_AS_BEFORE, MEMORY_BEGINS, MEMORY_ENDS };
enum memory_life faults_memory_life(enum abi_index function);

/* Traces the addresses that a call is about to pass: the kernel's arguments, or both ends of a
 * copy. `row` is the kernel's row in the counters. */
void faults_trace(const struct call *call, size_t row);

/* Makes ROCr tell the address of a memory fault, before it ends the process. Each part of HIP's
 * start calls this function, and one call finds ROCr ready. */
void faults_watch(void);

/* Returns the key of a kernel in the counters: a hash of its image and its name. */
uint64_t faults_kernel_key(uint64_t image, const char *name, size_t length);

/* ---- record_file.c, record_head.c ----
 *
 * The file in which a process records. The counters and the trace are memory that is mapped from
 * the file, so the recording survives any end of the process. While the program runs, the library
 * makes no system call for it. */

/* Creates a new file, with mode 0600, which only this process records in. The file's blocks are
 * allocated on the disk. Its first pages get a copy of the counters, and replace these. Returns the
 * pages of the rest, `trace` bytes.
 *
 * A pattern names the file. A first %p is the process id. Without %p a rank is appended. If the
 * name is taken, the process id is appended, and a line names the file.
 *
 * If the file cannot be made, returns NULL after one line that says why. `variable` is the option
 * that contains the pattern. The caller holds start_lock. */
void *record_file(const char *variable, const char *pattern, size_t trace);

/* Writes the head of a recording of `size` bytes to `out`. A recording is a struct counts, which
 * contains the head, and with a trace a struct trace. The head names each field of both structs,
 * with its place in the recording. Texts follow: the names of functions, caches and errors. */
void record_head(char out[RECORD_HEAD], uint64_t size);

#endif
