/* Reports facts about devices. */
#ifndef MGPU_RT_DEVICE_H
#define MGPU_RT_DEVICE_H

#include "mgpu.h"

#include <sys/types.h>

/* Returns true if kernels of the device can access pageable host memory (XNACK, HMM), or if HIP
 * does not answer the query. The library queries HIP once for each device. */
bool device_reaches_pageable(int device);

/* Returns true if host code can read memory of the device itself, or if kernels can access pageable
 * host memory. Also returns true if HIP does not answer. HIP reports a device whose memory the host
 * can reach as integrated, or as one with a large BAR. The library queries HIP once for each
 * device. */
bool device_shares_memory(int device);

/* Writes the target of a device ("gfx90a:sramecc+:xnack-"), as HIP names it; "": unknown. A
 * separate thread asks HIP, so that the calling thread's last error is unchanged. */
enum { DEVICE_TARGET = 64 };
void device_target(int device, char target[DEVICE_TARGET]);

/* Returns false if no block on the device can have so much workgroup memory (LDS). Returns true if
 * the limit is unknown: NVIDIA's driver has another limit for each kernel. The library asks HIP
 * once for each device, on a separate thread, too. */
bool device_has_group_memory(int device, int32_t bytes);

/* Returns a number for the device's place on the machine. Processes may number the devices
 * differently, but get one number for a place. Returns 0 if HIP does not report the place. The
 * library asks HIP once for each device, on a separate thread, too. */
off_t device_place(int device);

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

/* Finds HIP's number of the allocation at an address. HIP counts all allocations, on all devices:
 * AMD's numbers have 32 bits. Returns false if HIP knows no allocation at the address. */
bool device_memory_number(void *memory, uint64_t *number);

#endif
