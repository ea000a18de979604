/* Code objects that HIP 5 takes for OpenCL's device-side enqueueing.
 *
 * LLVM 15 and later say of each kernel that it wants the device's default queue, unless they can
 * prove that it does not; at -O0, or where a kernel calls a function that is not optimised (printf
 * does), they do not try. HIP 5.2.3 then crashes at the launch: it reads a queue that only OpenCL
 * creates. So HIP is given a copy whose metadata says hidden_none there. The kernels stay as they
 * are; their argument stays 0, which it is without such a queue anyway. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "image.h"

/* True if some kernel of this code object is said to want a queue. Offload bundles are not looked
 * into. Reads the whole image: for misses only. */
bool metadata_wants_queue(const struct image *image);

/* Says hidden_none instead, in the code object itself. */
void metadata_drop_queue(unsigned char *bytes, size_t size);

#endif
