/* Whether this process calls HIP through this library only.
 *
 * Nothing in a process can prove that: a plug-in may open HIP at any time, and a handle that dlsym
 * returned leaves no trace. So it is the user's word (MGPU_RT_EXCLUSIVE=on), and off by default.
 * Where it is on, the runtime need not ask HIP whether a stream is idle, whether a block is still
 * its own, or, as long as nothing was mapped since, what an address is. */
#ifndef MGPU_RT_EXCLUSIVE_H
#define MGPU_RT_EXCLUSIVE_H

#include "base/options.h"

static inline bool exclusive_hip(void) {
    return options.exclusive_on;
}

#endif
