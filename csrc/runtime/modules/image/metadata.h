/* Reads facts about kernels from the metadata of AMD's code objects. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "modules/image/image.h"

/* Returns true if a kernel of the image may print or assert. Such a kernel has HIP's buffer as a
 * hidden argument in AMD's metadata, or calls vprintf on NVIDIA's GPUs. */
bool metadata_may_print(const struct image *image);

/* Returns the most threads that a block of a kernel may have, as the image's metadata record it; 0:
 * unknown. */
uint64_t metadata_block_limit(const struct image *image, const char *kernel);

/* Returns the bytes of workgroup memory that a kernel itself has, without the dynamic memory of a
 * launch; 0 if the number is unknown, too. */
uint64_t metadata_group_memory(const struct image *image, const char *kernel);

/* Reads the chip of a code object ("gfx90a:xnack+") from its bytes; returns false if the chip is
 * unknown.
 */
bool metadata_chip(const struct image *image, const char **chip, size_t *length);

#endif
