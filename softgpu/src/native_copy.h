/* Executes ROCr's built-in copy kernels without interpreting them. */
#ifndef SOFTGPU_NATIVE_COPY_H
#define SOFTGPU_NATIVE_COPY_H

#include "device.h"

/* Returns true if the dispatch was one of ROCr's copy or fill kernels, and is now complete. Returns
 * false if the interpreter must run the kernel: native copies are off, ROCr does not contain the
 * kernel, or the copy would fault. */
bool softgpu_native_copy(const struct softgpu_dispatch_packet *packet);

#endif
