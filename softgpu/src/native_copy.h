/* Executes ROCr's built-in copy kernels without interpreting them. */
#ifndef SOFTGPU_NATIVE_COPY_H
#define SOFTGPU_NATIVE_COPY_H

#include "device.h"

/* Returns true if the dispatch was one of ROCr's copy or fill kernels, and is now complete. Returns
 * false if the interpreter must run the kernel: a different kernel, or a copy that will fault. */
bool softgpu_native_copy(const struct softgpu_dispatch_packet *packet);

#endif
