/* Reads facts about kernels from the metadata of AMD's code objects. */
#ifndef MGPU_RT_METADATA_H
#define MGPU_RT_METADATA_H

#include "modules/image/image.h"

/* Returns true if a kernel of the image may print or assert. Such a kernel has HIP's buffer as a
 * hidden argument in AMD's metadata, or calls vprintf on NVIDIA's GPUs. */
bool metadata_may_print(const struct image *image);

/* A kernel, as a code object describes it. Numbers are 0 if they are unknown. */
struct metadata_kernel {
    const char *name; /* `length` characters, which no 0 ends */
    size_t length;
    uint64_t words;        /* bit i: argument i has 8 bytes, as an address has; i is below 64 */
    uint64_t most_threads; /* of a block */
};

/* The bytes that are still to be searched. */
struct rest {
    const unsigned char *at;
    size_t size;
};

/* Returns the bytes that may describe kernels: those of a code object. */
struct rest metadata_in(const struct image *image);
/* Reads the next kernel, and moves `rest` behind the kernel's name. Returns false behind the last.
 */
bool metadata_next_kernel(struct rest *rest, struct metadata_kernel *out);

/* Writes the targets ("gfx906, gfx90a:xnack+") of a code object or of the entries of a bundle, each
 * once, as far as the bytes show them. */
void metadata_targets(const struct image *image, char *text, size_t size);

#endif
