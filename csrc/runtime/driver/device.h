/* Reports facts about devices. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if kernels of the device can access pageable host memory (XNACK, HMM), or if HIP
 * does not report this. The library queries HIP once for each device. */
bool device_reaches_pageable(int device);

/* Writes the targets of all devices ("gfx90a:sramecc+:xnack-"), each once, separated by ", ", as
 * HIP names them. Leaves out a device whose target HIP does not report. A separate thread asks HIP,
 * so that the calling thread's last error is unchanged. */
void device_targets(char *text, size_t size);

/* Selects the device that MGPU_RT_DEVICE requests for the calling thread, unless the program has
 * chosen a device by HIP. (The library cannot distinguish a program that chose device 0 from HIP's
 * default.) */
void device_choose(void);

/* Clears the thread's last error after a query by the runtime has failed, because the program may
 * read the last error. In HIP 6 and older each successful call clears the last error, so a
 * successful call of stock would have the same effect. */
void device_clear_error(hipError_t error);

/* Returns true if the result of a query is hipSuccess; otherwise clears the query's error. */
bool device_answered(hipError_t error);

/* Finds the number that HIP gives to an allocation of any kind and never reuses. Returns false if
 * HIP knows no allocation at that address. */
bool device_memory_number(void *memory, uint64_t *number);

#endif
