/* Reads facts about kernels from the metadata of AMD's code objects, and corrects the metadata for
 * HIP 5.2.
 *
 * LLVM 15 and later record for each kernel that the kernel needs the device's default queue, unless
 * LLVM can prove the contrary. LLVM attempts no such proof at -O0, or if a kernel calls a function
 * that is not optimised, such as printf. HIP 5.2.3 then crashes at the launch, because it reads a
 * queue that only OpenCL creates. So HIP gets a copy of the image whose metadata marks the queue's
 * argument as hidden_none. The kernels are unchanged, and the queue's argument stays 0, as in every
 * process that has no default queue. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "modules/image/image.h"

/* Returns true if this code object contains a kernel that requests a queue. Does not read the
 * entries of offload bundles. Reads the whole image, so only misses call this function. */
bool metadata_wants_queue(const struct image *image);

/* Returns true if this release of HIP (a number of hipRuntimeGetVersion) crashes on the image: HIP
 * 5.2.3 crashes; 5.7.1, 6.4.3 and 7.2.4 do not crash. For the later releases the function does not
 * read the image. */
bool metadata_needs_copy(const struct image *image, int release);

/* Replaces the queue's argument by hidden_none, in the code object itself. */
void metadata_drop_queue(unsigned char *bytes, size_t size);

/* Returns true if a kernel of the image may print or assert. AMD's metadata list HIP's buffer as a
 * hidden argument of such a kernel; kernels for NVIDIA call vprintf. */
bool metadata_may_print(const struct image *image);

/* Returns the most threads that a block of a kernel may have, as the image's metadata record it; 0:
 * unknown. */
uint64_t metadata_block_limit(const struct image *image, const char *kernel);

/* Reads the chip of a code object ("gfx90a:xnack+") from its bytes; returns false if the chip is
 * unknown.
 */
bool metadata_chip(const struct image *image, const char **chip, size_t *length);

#endif
