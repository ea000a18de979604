/* The way to a runtime of the user's own. Its functions take the place of this library's, one by
 * one (mgpu_rt_intercept). MGPU_RT_RUNTIME names one in Python, which does so at the first call.
 *
 * Costs nothing until it is asked for. MODE_OVERRIDE is one more bit of runtime_mode, so calls that
 * have somewhere else to go take the slow entry. */
#ifndef MGPU_RT_OVERRIDE_H
#define MGPU_RT_OVERRIDE_H

#include "base/abi.h"
#include "base/likely.h"
#include "base/state.h"
#include "mgpu_rt.h"

/* True while the calling thread is in a call that the user's runtime makes of this library. */
extern __thread bool override_inside;

/* The enum abi_index of a name; ABI_COUNT if there is no such function. */
int override_index(const char *name);

mgpu_rt_function override_find(enum abi_index function);

/* The function that answers a call of the program's in place of this library; NULL: none. */
static inline mgpu_rt_function override_taken(enum abi_index function) {
    return UNLIKELY(runtime_is(MODE_OVERRIDE)) ? override_find(function) : NULL;
}

/* Once the options are read, before any call is answered. */
void override_start(void);
/* In a child of fork: this library answers, since the interpreter's threads are the parent's. */
void override_forked(void);
/* The process ends, and HIP still lives: tells the user's runtime. From here on this library
 * answers. */
void override_end(void);

#endif
