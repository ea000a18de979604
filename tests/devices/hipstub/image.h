/* Facts about a device image that need no device. The caller does not tell an image's extent, so
 * all is read through the kernel, which refuses unmapped memory. */
#ifndef HIPSTUB_IMAGE_H
#define HIPSTUB_IMAGE_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

/* Copies a whole image: an ELF code object, an offload bundle, a compressed one. The caller owns
 * the copy. Returns hipErrorInvalidKernelFile for foreign bytes, hipErrorInvalidImage for a broken
 * image.
 */
hipError_t image_copy(const void *image, unsigned char **copy, size_t *bytes);

/* Returns whether the image has a kernel of that name; a compressed one may have any. */
bool image_has_kernel(const unsigned char *image, size_t bytes, const char *name);

/* Finds the size of a global variable and, unless it is zeroed memory, its initial value. Returns
 * false if the symbol table of this type lacks it: SHT_DYNSYM has exports, SHT_SYMTAB all that its
 * kernels know. */
bool image_global(const unsigned char *image, size_t bytes, unsigned table, const char *name,
                  size_t *size, const unsigned char **value);

#endif
