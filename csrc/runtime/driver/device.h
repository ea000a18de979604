/* Reports facts about devices. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if kernels of the device can access pageable host memory (XNACK, HMM), or if HIP
 * does not answer the query. The library queries HIP once for each device. */
bool device_reaches_pageable(int device);

/* Writes the targets of all devices ("gfx90a:sramecc+:xnack-"), each once, separated by ", ", as
 * HIP names them. Leaves out a device whose target HIP does not report. A separate thread asks HIP,
 * so that the calling thread's last error is unchanged. */
void device_targets(char *text, size_t size);

/* Returns the most bytes of workgroup memory that a block may have; 0: unknown. The library asks
 * HIP once for each device, on a separate thread, too. */
int device_group_memory(int device);

/* Makes the device that MGPU_RT_DEVICE names the calling thread's device, unless the program has
 * chosen a device by HIP. The library does not notice if the program has chosen device 0, because
 * device 0 is also HIP's default. */
void device_choose(void);

/* Clears the thread's last error when a query of the library has failed, because the program must
 * not find this error. In HIP 6 and older each successful call clears the last error, so a
 * successful call of stock would have the same effect. */
void device_clear_error(hipError_t error);

/* Returns true if the result of a query is hipSuccess; otherwise clears the query's error. */
bool device_answered(hipError_t error);

/* Finds HIP's number of the allocation at an address. HIP never uses a number twice. Returns false
 * if HIP knows no allocation at the address. */
bool device_memory_number(void *memory, uint64_t *number);

#endif
