/* A stand-in for libamdhip64: a test's functions beyond HIP's own.
 *
 * Environment, read once when the library is loaded:
 *
 *   HIPSTUB_MODE      fast (default): every function returns at once, with unique handles, no
 *                     locks and no counts: for benchmarks. Device memory is only an address.
 *                     record: HIP emulated on host memory, every call recorded and checked.
 *   HIPSTUB_LOG       a path: the record as JSON, written when the process ends (%p: its id).
 *   HIPSTUB_FAULT     hipMalloc:3:2,hipFree:*:1  the third hipMalloc answers 2, each hipFree 1.
 *   HIPSTUB_DELAY     hipModuleLoadData:2000,hipFree:50  microseconds before the call's work.
 *   HIPSTUB_ASYNC     500 or 500,0,2000  streams run on threads of their own, each operation
 *                     that many microseconds late; several numbers: one a stream, in order of
 *                     creation (the null stream first), repeated. "held" instead of a number:
 *                     each operation stays undone until somebody waits for it, "held2" until two
 *                     threads do: what a program may find done and what not is then certain.
 *   HIPSTUB_DEVICES   number of devices, 1. As with AMD's, a reset ends objects of the thread's
 * device, and with several devices it leaves pinned and managed memory.
 *   HIPSTUB_VERSION the result of hipRuntimeGetVersion, 50221153 (Debian 12's). From 70000000 on
 * the thread's last error behaves as in HIP 7 (log.c).
 *   HIPSTUB_CAPABILITY  ten times the devices' compute capability, 90: from 125 on, gfx1250's,
 *                     they have clusters, which hipDrvLaunchKernelEx of version 7 takes.
 *   HIPSTUB_PAGEABLE 1: the devices report that they reach pageable host memory.
 *   HIPSTUB_PINS 1: copies from and to registered memory use the pages of the time of registration,
 * as on a GPU. At most 1 MB of a range is pinned.
 *   HIPSTUB_MEMORY    bytes of device memory of all devices, 1 GiB; hipMalloc beyond answers 2.
 *                     hipExtMallocWithFlags' memory is not counted, nor by hipstub_live.
 *   HIPSTUB_KERNELS   a shared library with `void hipstub_kernels(void)`, called at the first
 *                     module load to give kernels a body.
 *   HIPSTUB_REUSE 1: destroyed handles and freed memory are used again, as with AMD's: a use by
 * their old owner then looks like a right one.
 *                     2: also as another kind: an event gets a dead stream's handle.
 *   HIPSTUB_DESTROY_RETURNS  1: hipStreamDestroy does not wait for the stream's work, as HIP's
 *                     documents allow. With HIPSTUB_REUSE the rest of that work counts as pending
 * on the next stream with its handle.
 *   HIPSTUB_TEARDOWN  1: a call after the exit handler that the first call registered aborts, as
 *                     HIP's statics are gone by then.
 *
 * LOG, FAULT, DELAY, ASYNC, KERNELS and TEARDOWN each choose record mode by themselves.
 *
 * The stub differs from AMD's HIP on purpose, and is harsher. Handles and device addresses do not
 * come back after they were destroyed or freed, unless HIPSTUB_REUSE is set. A use after that is an
 * error and counted as misuse. New device memory holds 0xA5, freed memory 0xDB.
 *
 * All functions below may be called from any thread and work in record mode only. */
#ifndef HIPSTUB_H
#define HIPSTUB_H

#include <stddef.h>
#include <stdint.h>

/* Returns 1 in record mode, 0 in fast mode. */
int hipstub_recording(void);

/* Returns the number of calls of one function, by its name, since the start or the last reset. */
uint64_t hipstub_count(const char *function);

/* Returns the number of all calls. */
uint64_t hipstub_calls(void);

/* Returns the number of uses of dead or unknown handles and freed memory since the start or the
 * last reset. */
uint64_t hipstub_misuse(void);

/* Returns the number of live objects: "streams", "events", "modules", "allocations", "bytes" of
 * device memory, "registrations", "graphs" (executables too); -1 for another word. */
int64_t hipstub_live(const char *what);

/* Returns the number of a stream's (NULL: the null stream's) operations that are submitted and not
 * done.
 */
uint64_t hipstub_pending(void *stream);

/* Returns the number of threads that wait inside HIP for a stream's operations. */
unsigned hipstub_waiters(void *stream);

/* Clears counts, record and misuse; counts for faults start again. Handles stay valid. */
void hipstub_reset(void);

/* Returns the record as JSON, in HIPSTUB_LOG's form. The caller frees the text with free(). */
char *hipstub_json(void);

/* Sets HIPSTUB_FAULT and HIPSTUB_DELAY from now on; "" ends them. Returns 0, or -1 for a wrong
 * text. */
int hipstub_set_fault(const char *text);
int hipstub_set_delay(const char *text);

/* Makes each call of a function wait from now on until that many of them have begun, on different
 * threads. Returns 0, or -1 for an unknown function. */
int hipstub_set_meeting(const char *function, unsigned calls);

/* Gives every kernel of that name a body. params is as hipModuleLaunchKernel got it, but points to
 * copies of `count` arguments of the given sizes in bytes, made at the launch. The body runs when
 * the stream executes it, on the stream's thread if HIPSTUB_ASYNC is set. */
void hipstub_set_kernel(const char *name, void (*body)(void **params), const size_t *sizes,
                        unsigned count);

/* Gives a kernel's body the grid and block sizes, x y z each, and the launched module's global. */
void hipstub_launch_size(unsigned size[6]);
void *hipstub_global(const char *name);

#endif
