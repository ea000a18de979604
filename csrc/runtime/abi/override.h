/* Finds the function that answers a call in place of this library's implementation. The function is
 * an override, which the user has set by mgpu_rt_intercept, or a function of graphs/.
 * MGPU_RT_RUNTIME names a class in Python, whose overrides the first call sets.
 *
 * Overrides cost nothing until one is set. MODE_OVERRIDE, MODE_GRAPH and MODE_EXTERNAL are bits of
 * runtime_mode. A call looks for another function only if one of these bits is set. */
#ifndef MGPU_RT_OVERRIDE_H
#define MGPU_RT_OVERRIDE_H

#include "likely.h"
#include "mgpu.h"
#include "mgpu_rt.h"
#include "process/state.h"

/* Set while the calling thread is in a call to this library that an override makes. */
extern __thread bool override_inside __attribute__((tls_model("initial-exec")));

/* Returns the enum abi_index of a name; ABI_COUNT if no function has that name. */
int override_index(const char *name);

/* Returns the function that answers a call in place of the call's implementation; NULL if the
 * implementation answers. The order:
 *
 *     the graph that the calling thread builds    every call; fails if an override is set
 *     the thread's external stream                its create and destroy; every call of a capture
 *     an override                                 every call that no override makes
 *     the capture of another thread               the calls in graphs/capture.c
 *
 * An override may call HIP. If HIP does not report such calls, the first override ends
 * MGPU_RT_EXCLUSIVE=on, and with it MGPU_RT_SYNC=lazy. */
mgpu_rt_function override_find(enum abi_index function);
static inline mgpu_rt_function override_answer(enum abi_index function) {
    return UNLIKELY(runtime_is(MODE_OVERRIDE | MODE_GRAPH | MODE_EXTERNAL))
               ? override_find(function)
               : NULL;
}

/* Returns true if overrides are the only reason for the slow entry: nothing records such a call.
 * Stores the override that answers the call; NULL if the implementation answers. */
bool override_unrecorded(enum abi_index function, mgpu_rt_function *answer);

/* Returns true if any function has an override. Creates the runtime that MGPU_RT_RUNTIME names. */
bool override_present(void);

/* Prepares the overrides that the user has requested. Runs after the options are read, and before
 * the library answers a call. */
void override_start(void);
/* Ends overrides in a forked child: this library answers, because the interpreter's threads belong
 * to the parent. */
void override_forked(void);
/* Notifies the user's runtime that the process ends, while HIP still works. After this call the
 * library's implementations answer. */
void override_end(void);

#endif
