/* A stand-in for libamdhip64. In addition to HIP's functions, the stub defines the functions below,
 * which only tests call.
 *
 * Environment variables, which the library reads once when it is loaded:
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
 *   HSA_XNACK 1: the devices' target has xnack on.
 *   HIPSTUB_CAPABILITY  ten times the devices' compute capability, 90: from 125 on, gfx1250's,
 *                     they have clusters, which hipDrvLaunchKernelEx of version 7 takes.
 *   HIPSTUB_PAGEABLE 1: the devices report that they reach pageable host memory.
 *   HIPSTUB_VISIBLE bar or integrated: the devices report that the host reaches their memory,
 * through a large BAR (as HIP 6 does from version 60000000 on) or as integrated devices.
 *   HIPSTUB_PINS 1: copies from and to registered memory use the pages of the time of registration,
 * as on a GPU. At most 1 MB of a range is pinned.
 *   HIPSTUB_MEMORY    bytes of device memory of all devices, 1 GiB; hipMalloc beyond answers 2.
 *                     hipExtMallocWithFlags' memory is not counted, nor by hipstub_live.
 *   HIPSTUB_LATE 1: hipMalloc gets freed memory only after hipStreamQuery has found a stream
 *                     idle, as with AMD's HIP 5.2.3.
 *   HIPSTUB_SHARED    1: the processes that are forked once the stub is loaded share one device's
 *                     memory with their parent. The memory of a killed process is free.
 *   HIPSTUB_KERNELS   a shared library with `void hipstub_kernels(void)`, called at the first
 *                     module load to give kernels a body.
 *   HIPSTUB_REUSE 1: destroyed handles and freed memory are used again, as with AMD's: a use by
 * their old owner then looks like a right one.
 *                     2: also as another kind: an event gets a dead stream's handle.
 *   HIPSTUB_DESTROY_RETURNS  1: hipStreamDestroy does not wait for the stream's work, as HIP's
 *                     documents allow. With HIPSTUB_REUSE the rest of that work counts as pending
 * on the next stream with its handle.
 *   HIPSTUB_TELLS 1: as AMD's HIP from 5.3 on, the stub reports each call to the function that
 *                     hipRegisterTracerCallback has set. The stub also plays ROCr: until the first
 *                     call of HIP, hsa_system_get_info answers that ROCr has not started. 0: the
 * stub plays ROCr and reports no call, as some builds of HIP. HIPSTUB_TEARDOWN  1: a call after the
 * exit handler that the first call registered aborts, as HIP's statics are gone by then.
 *
 * If LOG, FAULT, DELAY, ASYNC, KERNELS, SHARED or TEARDOWN is set, the stub works in record mode.
 *
 * The stub intentionally differs from AMD's HIP, and is stricter. Without HIPSTUB_REUSE, the
 * stub reuses neither the handles of destroyed objects nor the addresses of freed memory. A use of
 * a destroyed handle or of freed memory is an error, and the stub counts it as misuse. New device
 * memory contains the bytes 0xA5; freed memory contains the bytes 0xDB.
 *
 * Any thread may call the functions below, which work only in record mode. */
#ifndef HIPSTUB_H
#define HIPSTUB_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number of calls of the named function since the start or the last reset. */
uint64_t hipstub_count(const char *function);

/* Returns the number of misuses since the last reset: uses of dead or unknown handles, of freed
 * memory, or of memory beyond a block. */
uint64_t hipstub_misuse(void);

/* Returns the number of live objects of one kind: "streams", "events", "modules", "allocations" or
 * "registrations". "graphs" counts graphs and executable graphs, and "bytes" counts bytes of device
 * memory. Returns -1 for other words. */
int64_t hipstub_live(const char *what);

/* Returns the number of unfinished operations on a stream (NULL: the null stream).
 */
uint64_t hipstub_pending(void *stream);

/* Returns how often hipRegisterTracerCallback was called. Works in each mode. */
uint64_t hipstub_registrations(void);

/* Returns the number of threads that wait inside HIP for operations of a stream. */
unsigned hipstub_waiters(void *stream);

/* Clears the counts, the record and the list of misuses. Counts the calls for HIPSTUB_FAULT from 1
 * again. Handles remain valid. */
void hipstub_reset(void);

/* Returns the record as JSON, in the form of HIPSTUB_LOG. The caller frees the text with free(). */
char *hipstub_json(void);

/* Sets HIPSTUB_FAULT or HIPSTUB_DELAY; "" clears the setting. Returns 0, or -1 for invalid text. */
int hipstub_set_fault(const char *text);
int hipstub_set_delay(const char *text);

/* Sets the body of all kernels with this name. `params` has the form of hipModuleLaunchKernel's
 * kernelParams, but points to copies that the launch makes. `sizes` contains the sizes of the
 * `count` arguments. If HIPSTUB_ASYNC is set, the stream's thread runs the body; otherwise the
 * calling thread runs the body. */
void hipstub_set_kernel(const char *name, void (*body)(void **params), const size_t *sizes,
                        unsigned count);

/* Gives a kernel's body facts about the launch. hipstub_launch_size stores the grid size (x, y, z)
 * and the block size (x, y, z). hipstub_global returns the address of a global in the kernel's
 * module. */
void hipstub_launch_size(unsigned size[6]);
void *hipstub_global(const char *name);

#endif
