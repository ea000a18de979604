/* Makes the copies of ROCr's own kernels without interpreting them. */
#ifndef SOFTGPU_NATIVE_COPY_H
#define SOFTGPU_NATIVE_COPY_H

#include "device.h"

/* Returns true if the dispatch was one of ROCr's copy or fill kernels and is done. Returns false if
 * the interpreter has to run the kernel: another kernel, or a copy that will fault. */
bool softgpu_native_copy(const struct softgpu_dispatch_packet *packet);

#endif
