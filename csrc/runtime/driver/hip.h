/* The one layer that touches HIP: a table of its functions, filled when the first call needs it.
 *
 * libamdhip64 is never linked against. libamdhip64 would drag ROCm's LLVM into a process that may
 * have another ("Option 'default' already exists!", rocMLIR #2357). A program that never launches
 * should not pay for HIP. */
#ifndef MGPU_RT_HIP_H
#define MGPU_RT_HIP_H

#include "likely.h"
#include "mgpu.h"
#include "process/state.h"

struct hip_functions {
#define HIP_FN(need, name, params, args) hipError_t(*name) params;
#include "driver/hip.def"
#undef HIP_FN
    const char *(*GetErrorName)(hipError_t error);
};

/* Callable at any time: before hip_install, and when no HIP was found, each function answers
 * hipErrorSharedObjectInitFailed; a missing optional one answers hipErrorNotSupported. */
extern struct hip_functions hip;

/* A library that serves as HIP. */
struct hip_library {
    struct hip_functions functions;
    char path[4096]; /* as the loader knows it; "" if none */
};

/* Makes this library the one that `hip` calls. */
void hip_install(const struct hip_library *library);

/* Returns the path of the installed library; "" if none. */
const char *hip_path(void);

/* Writes an error's name into `text`, "error 1234" if nobody has one, and returns that. Does so in
 * a process without HIP, too. */
enum { HIP_ERROR_TEXT = 64 };
const char *hip_error_text(hipError_t error, char text[HIP_ERROR_TEXT]);

/* HIP's functions without a stopwatch, for calls that are not to be counted (MGPU_RT_STATS).
 * driver_calls_watch puts a stopwatch before those of `hip`. */
extern struct hip_functions hip_untimed;

/* The number of devices; HIP is asked once, 1 if it does not say. With one device, calls need not
 * ask for the current one. */
extern int hip_device_count;

/* True if HIP has said that there is no device at all. */
extern bool hip_no_device;

/* HIP's release; 0 where HIP was not asked (MGPU_RT_CACHE=off). */
extern int hip_version;

/* Returns the calling thread's current device. Costs nothing with one device. With several devices
 * the question is a driver call (a read of a thread-local variable in HIP, 10 to 50 ns). The
 * program may have called hipSetDevice itself, so there is no other way to know. */
static inline int hip_current_device(void) {
    int device = 0;
    if (__builtin_expect(hip_device_count > 1, 0) && hip.GetDevice(&device) != hipSuccess)
        device = 0;
    return device;
}

#endif
