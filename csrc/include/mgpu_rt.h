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

struct ihipStream_t; /* hipStream_t is a pointer to it */

/* Makes mgpuStreamCreate on the calling thread return `stream` instead of one of the library's own;
 * NULL ends that. The stream stays the caller's: mgpuStreamDestroy leaves it alone, and it must
 * live until the thread has called this again with another value or has ended. Returns 0, or -1 if
 * memory ran out. */
int mgpu_rt_use_stream(struct ihipStream_t *stream);

/* Gives back to the driver what is cached and not in use: modules that nobody holds, idle streams,
 * spare events. What the program holds stays. Returns the number of driver objects given back. */
int mgpu_rt_empty_cache(void);

/* Statistics so far as JSON, in the form that README.md describes; the caller frees it with free().
 * Calls and times are 0 unless MGPU_RT_STATS is set; the counts of the caches are always kept where
 * they cost nothing: on misses. NULL if memory ran out. */
char *mgpu_rt_stats_json(void);

/* "major.minor.patch"; static. */
const char *mgpu_rt_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
