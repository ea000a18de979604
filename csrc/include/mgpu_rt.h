/* mgpu_rt.h: what libmlir_rocm_runtime.so of mgpu_rt offers beyond the mgpu* ABI.
 *
 * All functions are thread-safe unless they say otherwise, may be called before any mgpu* function,
 * and never throw or exit. A program that may also run with LLVM's own library should look them up
 * with dlsym and go on without. */
#ifndef MGPU_RT_H
#define MGPU_RT_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#include <stddef.h>

struct ihipStream_t; /* hipStream_t is a pointer to it */

/* Makes mgpuStreamCreate on the calling thread return `stream` instead of one of the library's own;
 * NULL ends that. The stream stays the caller's: mgpuStreamDestroy leaves it alone, and it must
 * live until the thread has called this again with another value or has ended. Returns 0, or -1 if
 * memory ran out. */
int mgpu_rt_use_stream(struct ihipStream_t *stream);

/* HIP's name of the error of the last mgpu* call on the calling thread that failed, such as
 * "hipErrorInvalidValue", and forgets it; NULL if none has failed since this was last called.
 * Static. For what returns nothing, as most mgpu* functions do: each failure has its line on stderr
 * all the same, and HIP's own last error stays as it is. */
const char *mgpu_rt_take_error(void);

/* Gives back to the driver what is cached and not in use: modules that nobody holds, idle streams,
 * spare events, device memory. What the program holds stays. Returns the number of driver objects
 * given back. */
int mgpu_rt_empty_cache(void);

/* Statistics so far as JSON; the caller frees it with free(). NULL if memory ran out.
 *
 *     process    pid, rank (null without MPI), program, ended ("exit", "unfinished"), seconds since
 *                the first call, date of that in seconds since 1970
 *     start      ns of HIP's own start, which is in no call's time
 *     device     name of the device that it started on; hip, its release (null: not known)
 *     abi, hip   of the program's calls and of the driver's, by function: calls, ns
 *     kernels    by name: launches, ns within the calls that launch, module: the gpu.module of the
 *                kernel's image (null: not known). Kernels of one name in several images have that
 *                before it, "main_kernel_0::main_kernel", or else 8 digits of the image's hash.
 *                "(others)": of kernels that did not come from mgpuModuleGetFunction
 *     copies     to_device, from_device, on_device, fill: calls, bytes. unknown: neither end is
 *                memory of mgpuMemAlloc's (with MGPU_RT_CACHE=off all are)
 *     modules    by image: its hash, bytes, loads by the program and by the driver, kernels asked
 *                for, name of its gpu.module, why it is loaded anew each time (both may be null)
 *     cache      of modules, functions, streams, events, memory: hits, misses, evictions
 *     memory     of each device, in bytes: allocated, reserved, the peaks of both; blocks
 *     manager    none, starting, serving, ended
 *
 * Calls and times are 0 unless MGPU_RT_STATS or MGPU_RT_TRACE was set at the first call; the counts
 * of the caches are always kept where they cost nothing: on misses. */
char *mgpu_rt_stats_json(void);

/* The same JSON, or a trace's, from the recording at a path: what MGPU_RT_STATS or MGPU_RT_TRACE
 * has left of a process that was ended otherwise than by exit. The caller frees it with free().
 * NULL with errno, which is EBADMSG if it is no whole recording of this version's. */
char *mgpu_rt_recording_json(const char *path);

/* What tells kernels of this image from kernels of their name in others, as statistics show it. The
 * gpu.module that the image was made of goes to `name`, cut off at `size` bytes with its 0: the
 * name of the constant that the image lies in, in the symbol table of its file. "" if that is not
 * known. Returns the hash of the image; 0 if its size is not known. Reads the file: milliseconds.
 */
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);

/* ---- scratch buffers ----
 *
 * Device memory that a program needs again and again for a moment, such as the arguments or the
 * results of a launch: one buffer for each owner, allocated at its first use, kept from then on,
 * grown on demand, given back in the order of its stream. Owners are moved, never copied.
 *
 *     struct mgpu_rt_scratch scratch = {.stream = stream};
 *     void *room = mgpu_rt_scratch_reserve(&scratch, bytes);
 *     ...
 *     mgpu_rt_scratch_release(&scratch);
 *
 * One thread at a time may use an owner; different owners need no care. */
struct mgpu_rt_scratch {
    struct ihipStream_t *stream; /* in whose order the buffer is used and given back; lives longer
                                    than the owner. NULL: the null stream */
    void *data;                  /* device memory, or NULL */
    size_t capacity;             /* bytes at data */
};

/* Device memory of at least `bytes` bytes, whose content is undefined after it has grown; then
 * earlier pointers into it are not to be used for new work (work in flight keeps what it has). NULL
 * if there is no memory: then what the owner had is still there, unchanged. 0 bytes: what there is.
 */
void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *scratch, size_t bytes);

/* Gives the buffer back in its stream's order. The owner is empty then and can be used again. */
void mgpu_rt_scratch_release(struct mgpu_rt_scratch *scratch);

/* Gives `to` what `from` owns, its stream included; what `to` had is given back first, and `from`
 * is left empty on its stream. Moving to itself does nothing. */
void mgpu_rt_scratch_move(struct mgpu_rt_scratch *to, struct mgpu_rt_scratch *from);

/* ---- a runtime of your own ----
 *
 * Functions that take the place of the mgpu* functions, one by one, in the path of the calls; what
 * MGPU_RT_RUNTIME names in Python is put there by these. Calls that nothing has taken the place of
 * cost some 10 ns more meanwhile, and nothing at any other time. */
typedef void (*mgpu_rt_function)(void); /* of the type that the function of that name has */

/* This library's own function of that name ("mgpuStreamCreate"), whatever has taken its place; NULL
 * if it has none. Calls through it are not counted in statistics: the program's call is. */
mgpu_rt_function mgpu_rt_native(const char *name);

/* From now on `instead` answers the program's calls of that function; NULL: the library does again.
 * "end" is called without arguments when the process ends and HIP still lives. A child of fork has
 * none of this. Calls under way end as they began. Returns 0, or -1 if there is no such function.
 */
int mgpu_rt_intercept(const char *name, mgpu_rt_function instead);

/* Prints LLVM's line for a call of HIP's that failed with a hipError_t, and makes the error the
 * thread's last (mgpu_rt_take_error). */
void mgpu_rt_report(const char *call, int error);

/* The path of the HIP library that the library drives; "" before the first call, or if there is
 * none. */
const char *mgpu_rt_hip_path(void);

/* The HIP libraries of this machine in the order in which the first call tries them, unless the
 * process has one or MGPU_RT_HIP names one: a line each, how it was found, a tab, its path. Opens
 * none. The caller frees it with free(). NULL if memory ran out. */
char *mgpu_rt_find_hip(void);

/* "major.minor.patch"; static. */
const char *mgpu_rt_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
