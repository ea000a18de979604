/* Tells whether this process calls HIP through this library only.
 *
 * Nothing in a process can prove it: a plug-in may open HIP at any time, and a handle that dlsym
 * returned leaves no trace. So the user declares it (MGPU_RT_EXCLUSIVE=on); the option is off by
 * default. If it is on, the runtime need not ask HIP whether a stream is idle, or whether a block
 * still exists. While nothing new is mapped, it need not ask what an address is either. An override
 * may call HIP by itself, so the first override ends the exclusive mode (override.c). */
#ifndef MGPU_RT_EXCLUSIVE_H
#define MGPU_RT_EXCLUSIVE_H

#include "atomics.h"
#include "process/options.h"

static inline bool exclusive_hip(void) {
    return load_relaxed(&options.exclusive_on);
}

#endif
