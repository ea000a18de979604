/* Reads facts about kernels from the metadata of AMD's code objects, and corrects the metadata for
 * HIP 5.2.
 *
 * In each kernel's metadata, LLVM 15 and later record that the kernel needs the device's default
 * queue. LLVM omits the record only if it can prove that the kernel does not need the queue. LLVM
 * attempts no such proof at -O0, or if a kernel calls a function that is not optimised, such as
 * printf. HIP 5.2.3 then crashes at the launch, because it reads a queue that only OpenCL creates.
 * So HIP gets a copy of the image whose metadata marks the queue's argument as hidden_none. The
 * kernels' code is unchanged. In a process without a default queue, the queue's argument is 0 in
 * any case. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "modules/image/image.h"

/* Returns true if a kernel of this code object requests a queue. Returns false for an offload
 * bundle, whose entries the function does not read. Reads the whole image, so only misses call this
 * function. */
bool metadata_wants_queue(const struct image *image);

/* Returns true if this release of HIP crashes on the image. HIP 5.2.3 crashes; HIP 5.7.1, 6.4.3 and
 * 7.2.4 do not crash. `release` is the number that hipRuntimeGetVersion returns. For HIP 5.3 and
 * later, the function does not read the image. */
bool metadata_needs_copy(const struct image *image, int release);

/* Replaces the queue's argument by hidden_none, in the code object itself. */
void metadata_drop_queue(unsigned char *bytes, size_t size);

/* Returns true if a kernel of the image may print or assert. Such a kernel has HIP's buffer as a
 * hidden argument in AMD's metadata, or calls vprintf on NVIDIA's GPUs. */
bool metadata_may_print(const struct image *image);

/* Returns the most threads that a block of a kernel may have, as the image's metadata record it; 0:
 * unknown. */
uint64_t metadata_block_limit(const struct image *image, const char *kernel);

/* Returns the bytes of workgroup memory that a kernel itself has in each block, without the dynamic
 * memory of a launch; 0 if the number is unknown, too. */
uint64_t metadata_group_memory(const struct image *image, const char *kernel);

/* Reads the chip of a code object ("gfx90a:xnack+") from its bytes; returns false if the chip is
 * unknown.
 */
bool metadata_chip(const struct image *image, const char **chip, size_t *length);

#endif
