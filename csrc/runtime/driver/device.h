/* The runtime's knowledge of a device. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if kernels of the device reach pageable host memory by themselves (XNACK, HMM), or
 * if HIP does not say. HIP is asked once a device. */
bool device_reaches_pageable(int device);

/* Writes the targets of all devices ("gfx90a:sramecc+:xnack-"), each once, separated by ", ", as
 * HIP names them; nothing where HIP does not say. A separate thread asks HIP, so that the last
 * error of the calling thread stays. */
void device_targets(char *text, size_t size);

/* Gives the calling thread the device that MGPU_RT_DEVICE asks for, unless the program has chosen
 * one by HIP. (Whether it has chosen device 0 cannot be told from HIP's default.) */
void device_choose(void);

/* Removes the error of the runtime's own question from the thread's last error, which the program
 * may read. Up to HIP 6 a successful call clears the last error anyway, so the thread is left as
 * after stock's own call. */
void device_forget_error(hipError_t error);

/* Returns true if a question was answered by hipSuccess; if not, clears its error. */
bool device_answered(hipError_t error);

/* Finds the number that HIP gives to an allocation of any kind, and never gives again. Returns
 * false if HIP knows of no allocation there. */
bool device_memory_number(void *memory, uint64_t *number);

#endif
