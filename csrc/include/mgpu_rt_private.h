/* The functions for mgpu_rt's Python package, for mgpu-rt-probe, for `mgpu-rt check` and for the
 * tests.
 *
 * This header is not installed: a release may change it. All functions are thread-safe, as in
 * mgpu_rt.h. */
#ifndef MGPU_RT_PRIVATE_H
#define MGPU_RT_PRIVATE_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* Returns the manager's state: none, starting, serving, ended. */
const char *mgpu_rt_manager(void);

/* Finds the hash of an image (0: its size is unknown), and its place in the program's files. Writes
 * the file's path, cut off at `size` bytes including the final 0. Returns the image's address as
 * the file's symbols count it. MLIR names an image's constant after the gpu.module, so the symbol
 * at that place names the gpu.module. In a JIT's memory the path is "". */
unsigned long long mgpu_rt_image_place(const void *image, char *file, size_t size,
                                       unsigned long long *hash);

/* Returns the path of the HIP library that this library uses; "" before the first call, or if no
 * library was found. */
const char *mgpu_rt_hip_path(void);

/* Returns how many calls of this process have failed so far, so that `mgpu-rt check` says that it
 * did not check the work of these calls. */
unsigned mgpu_rt_failures(void);

/* Returns a number of a device (-1: the current one), which changes when the library detects the
 * first reset of the device. Half of the number is the device. Handles and memory that the program
 * got before the reset are no longer valid, and HIP may have reused their addresses. */
unsigned long long mgpu_rt_epoch(int device);

#pragma GCC visibility pop

#endif
