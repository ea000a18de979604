/* Finds what answers a call in place of this library's implementation: an override (a function that
 * the user has set by mgpu_rt_intercept) or a graph. MGPU_RT_RUNTIME names a class in Python, whose
 * overrides the first call sets.
 *
 * The table costs nothing until an override is set. MODE_OVERRIDE, MODE_GRAPH and MODE_EXTERNAL are
 * bits of runtime_mode, so calls take the slow entry and look for an override only if one bit is
 * set. */
#ifndef MGPU_RT_OVERRIDE_H
#define MGPU_RT_OVERRIDE_H

#include "likely.h"
#include "mgpu.h"
#include "mgpu_rt.h"
#include "process/state.h"

/* Set while the calling thread is in a call to this library that an override makes. */
extern __thread bool override_inside;

/* Returns the enum abi_index of a name; ABI_COUNT if no function has that name. */
int override_index(const char *name);

mgpu_rt_function override_find(enum abi_index function);

/* Sets the override of a function, or of "end", as mgpu_rt_intercept does. */
int override_set(const char *name, mgpu_rt_function instead);

/* Returns the function that answers a call in place of the call's implementation; NULL if the
 * implementation answers. The order:
 *
 *     1. The graph that the calling thread builds answers. An override is not asked; a call that it
 * would answer ends the building.
 *     2. The thread's external stream. mgpuStreamCreate returns this stream, and mgpuStreamDestroy
 * leaves it alive.
 *        While a thread captures, its capture answers every call.
 *     3. An override.
 *     4. The capture of another thread's external stream.
 *
 * A call that an override makes is answered by row 1, by row 4 or by the implementation. The first
 * override ends MGPU_RT_EXCLUSIVE, and with it MGPU_RT_SYNC=lazy: overrides may call HIP, or read
 * memory. */
static inline mgpu_rt_function override_answer(enum abi_index function) {
    return UNLIKELY(runtime_is(MODE_OVERRIDE | MODE_GRAPH | MODE_EXTERNAL))
               ? override_find(function)
               : NULL;
}

/* Records which image an override has loaded in the current call: perhaps no other code of the
 * library has read the image. */
void override_answered(void);

/* Returns true if any function has an override. Creates the runtime that MGPU_RT_RUNTIME names. */
bool override_present(void);

/* Reads which overrides are requested, after the options and before any call is answered. */
void override_start(void);
/* Ends overrides in a forked child: this library answers, because the interpreter's threads belong
 * to the parent. */
void override_forked(void);
/* Notifies the user's runtime that the process ends, while HIP still works. After this call the
 * library's implementations answer. */
void override_end(void);

#endif
