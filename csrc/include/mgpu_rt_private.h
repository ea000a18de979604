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

/* Finds the hash and the name of an image. If several images have kernels with equal names, the
 * statistics print the image's name or hash before the kernel's name. Copies the name of the
 * image's gpu.module to `name`, cut off at `size` bytes including the final 0. MLIR makes the image
 * a constant of the program, and derives the constant's name from the gpu.module's name. The
 * function finds the constant's name in the symbol table of the program's file. An unknown name is
 * "". Returns the hash of the image; 0 if the image's size is unknown. Reads the image's file,
 * which takes milliseconds. */
unsigned long long mgpu_rt_image_name(const void *image, char *name, size_t size);

/* Returns the path of the HIP library that this library uses; "" before the first call, or if no
 * library was found. */
const char *mgpu_rt_hip_path(void);

/* Returns the flags with which mgpuEventCreate creates events: hipEventDisableTiming (2), or
 * hipEventDefault (0) once the process needs the time between events. A process needs this time if
 * its program or a library imports or defines mgpuEventElapsedTime, or if the process has called
 * this library's function. */
unsigned mgpu_rt_event_flags(void);

/* Returns how many calls of this process have failed so far, so that `mgpu-rt check` says that it
 * did not check the work of these calls. */
unsigned mgpu_rt_failures(void);

/* Returns a number that changes when the library detects the first reset of the current device. A
 * reset invalidates the device's handles and memory. */
unsigned long long mgpu_rt_epoch(void);

/* Returns 0 if the device was reset for the first time since mgpu_rt_epoch returned this number.
 * Handles and memory that the program got then are no longer valid, and HIP may have reused their
 * addresses. Otherwise returns 1. */
int mgpu_rt_epoch_lasts(unsigned long long epoch);

#pragma GCC visibility pop

#endif
