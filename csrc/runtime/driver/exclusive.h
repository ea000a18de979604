/* Reports whether this process calls HIP only through this library.
 *
 * No process can prove such exclusive use: a plug-in may open HIP at any time, and a handle that
 * dlsym returned leaves no trace. So only the user can declare that no other code calls HIP
 * (MGPU_RT_EXCLUSIVE=on); the option is off by default. With that option the runtime need not ask
 * HIP whether a stream is idle, or whether a block still exists. As long as the process maps no new
 * memory, the runtime also need not ask HIP for the kind of memory at an address. An override may
 * call HIP itself, so the first override ends the exclusive mode (override.c). */
#ifndef MGPU_RT_EXCLUSIVE_H
#define MGPU_RT_EXCLUSIVE_H

#include "atomics.h"
#include "process/options.h"

static inline bool exclusive_hip(void) {
    return load_relaxed(&options.exclusive_on);
}

#endif
