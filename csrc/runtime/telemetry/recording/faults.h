/* Records what explains a memory fault: the addresses that calls pass, and the address of a fault.
 * `mgpu-rt stats --address` finds the block. */
#ifndef MGPU_RT_FAULTS_H
#define MGPU_RT_FAULTS_H

#include "modules/image/image.h"
#include "telemetry/call.h"

/* Notes which arguments of the kernels of an image may be pointers. */
void faults_know_image(const struct image *image);
/* Notes which arguments of a kernel may be pointers, over NVIDIA's driver, whose images do not
 * tell. `key` is the kernel's key in the counters. */
void faults_know_kernel(hipFunction_t kernel, uint64_t key);

/* Traces the addresses that a call is about to pass: the kernel's arguments, or both ends of a
 * copy. `row` is the kernel's row in the counters. */
void faults_trace(const struct call *call, size_t row);

/* Makes ROCr tell the address of a memory fault, before it ends the process. Each part of HIP's
 * start calls this function, and one call finds ROCr ready. */
void faults_watch(void);

/* Separates a forked child from what its parent knows. */
void faults_leave(void);

/* Returns the key of a kernel in the counters: a hash of its image and its name. */
uint64_t faults_kernel_key(uint64_t image, const char *name, size_t length);

#endif
