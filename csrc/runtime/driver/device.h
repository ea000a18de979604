/* The runtime's knowledge of a device. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if kernels of the device reach pageable host memory by themselves (XNACK, HMM), or
 * if HIP does not say. Asked once a device. */
bool device_reaches_pageable(int device);

/* Writes the targets of all devices ("gfx90a:sramecc+:xnack-"), each once, separated by ", ", as
 * HIP names them; nothing where HIP does not say. A thread of its own asks: the last error of the
 * calling thread stays. */
void device_targets(char *text, size_t size);

/* Gives the calling thread the device that MGPU_RT_DEVICE asks for, unless the program has chosen
 * one by HIP. (Whether it has chosen device 0 cannot be told from HIP's default.) */
void device_choose(void);

/* Takes the error of a question of the runtime's own out of the thread's last error, which the
 * program may read. Up to HIP 6 a call that succeeds clears that anyway, so the state is the one
 * that stock's own call would have left. */
void device_forget_error(hipError_t error);

/* Returns true if a question was answered by hipSuccess; else forgets its error. */
static inline bool device_answered(hipError_t error) {
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess;
}

/* Finds the number that HIP gives to an allocation of any kind, and to no other one afterwards.
 * False if it knows of none there. */
bool device_memory_number(void *memory, uint64_t *number);

#endif
