/* What the runtime knows of a device. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "base/abi.h"
#include "hip/exclusive.h"

#include <stdbool.h>
#include <stdint.h>

/* True if kernels of the device reach pageable host memory by themselves (XNACK, HMM), or if HIP
 * does not say. Asked once a device. */
bool device_reaches_pageable(int device);

/* Gives the calling thread the device that MGPU_RT_DEVICE asks for, unless the program has chosen
 * one by HIP. (Whether it has chosen device 0 cannot be told from HIP's default.) */
void device_choose(void);

/* A question of the runtime's own was answered with this error: takes it out of the thread's last
 * error, which the program may read. Up to HIP 6 a call that succeeds clears that anyway, so the
 * state is the one that stock's own call would have left. */
void device_forget_error(hipError_t error);

/* The number that HIP gives to an allocation of whichever kind, and to no other one afterwards.
 * False if it knows of none there. */
bool device_memory_number(void *memory, uint64_t *number);

/* Before something is kept on a device that is the thread's current one: from now on it shows if
 * somebody resets it. */
void device_watch(int device);

/* Before what was kept on a device is used again or given back: true if nobody has reset it since
 * device_watch. Otherwise all that is of that device is forgotten (hooks.forget). Costs a question
 * to HIP (0.1 µs), on AMD's devices, unless the process is the runtime's alone. */
bool device_ask_kept(int device);
static inline bool device_kept(int device) {
    return exclusive_hip() || device_ask_kept(device);
}
/* The same of every device. */
void device_ask_all(void);
void device_forget_watch(int device);

#endif
