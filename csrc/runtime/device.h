/* What the runtime knows of a device. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include <stdbool.h>

/* True if kernels of the device reach pageable host memory by themselves (XNACK, HMM), or if HIP
 * does not say. Asked once a device. */
bool device_reaches_pageable(int device);

#endif
