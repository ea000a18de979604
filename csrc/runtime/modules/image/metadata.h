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

/* Calls `visit` with the name of each kernel of a code object. Bit i of `words` says that the
 * kernel's argument i has 8 bytes, as an address has; arguments after the 64th are left out. */
typedef void metadata_visit(const char *name, size_t length, uint64_t words, void *data);
void metadata_kernels(const struct image *image, metadata_visit *visit, void *data);

/* Writes the targets ("gfx906, gfx90a:xnack+") of a code object or of the entries of a bundle, each
 * once, as far as the bytes show them. */
void metadata_targets(const struct image *image, char *text, size_t size);

#endif
