/* The metadata of AMD's code objects: their facts about kernels, and a correction for HIP 5.2.
 *
 * For each kernel, LLVM 15 and later note that it wants the device's default queue, unless they can
 * prove that it does not. LLVM does not try at -O0, or if a kernel calls a function that is not
 * optimised (as printf is). HIP 5.2.3 then crashes at the launch: it reads a queue that only OpenCL
 * creates. So HIP gets a copy whose metadata says hidden_none for that argument. The kernels stay
 * as they are; their argument stays 0, as without such a queue. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "modules/image/image.h"

/* Returns true if this code object names a kernel that wants a queue. Does not look into offload
 * bundles. Reads the whole image, so it is for misses only. */
bool metadata_wants_queue(const struct image *image);

/* Returns true if this release of HIP (a number of hipRuntimeGetVersion) crashes on it: 5.2.3 does,
 * 5.7.1, 6.4.3 and 7.2.4 do not. For the later releases the image is not even read. */
bool metadata_needs_copy(const struct image *image, int release);

/* Writes hidden_none in place of the queue's argument, in the code object itself. */
void metadata_drop_queue(unsigned char *bytes, size_t size);

/* Returns true if a kernel of the image may print or assert. Such kernels get HIP's buffer as a
 * hidden argument, which the metadata name; NVIDIA's call vprintf. */
bool metadata_may_print(const struct image *image);

/* Returns the most threads that a block of a kernel may have, by what it was compiled for; 0: not
 * known. */
uint64_t metadata_block_limit(const struct image *image, const char *kernel);

/* Finds the chip that a code object is for ("gfx90a:xnack+"), in its own bytes; returns false if
 * not known.
 */
bool metadata_chip(const struct image *image, const char **chip, size_t *length);

#endif
