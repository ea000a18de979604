/* What the runtime knows of a device. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "hip.h"

#include <stdbool.h>

/* True if kernels of the device reach pageable host memory by themselves (XNACK, HMM), or if HIP
 * does not say. Asked once a device. */
bool device_reaches_pageable(int device);

/* A question of the runtime's own was answered with this error: takes it out of the thread's last
 * error, which the program may read. Up to HIP 6 a call that succeeds clears that anyway, so the
 * state is the one that stock's own call would have left. */
void device_forget_error(hipError_t error);

#endif
