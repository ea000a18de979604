/* Facts about a device image that need no device. The caller does not pass an image's size, so the
 * stub reads images through a system call that fails at unmapped memory. */
#ifndef HIPSTUB_IMAGE_H
#define HIPSTUB_IMAGE_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

/* Copies a whole image: an ELF code object, an offload bundle or a compressed bundle. The caller
 * owns the copy. Returns hipErrorInvalidKernelFile for an unknown format, and hipErrorInvalidImage
 * for a damaged image.
 */
hipError_t image_copy(const void *image, unsigned char **copy, size_t *bytes);

/* Returns whether the image contains a kernel of that name; for a compressed image, always true. */
bool image_has_kernel(const unsigned char *image, size_t bytes, const char *name);

/* Finds the size of a global variable and its initial value, which is NULL for zeroed memory.
 * Returns false if the symbol table of the given type lacks the variable: SHT_DYNSYM lists exports,
 * SHT_SYMTAB all symbols. */
bool image_global(const unsigned char *image, size_t bytes, unsigned table, const char *name,
                  size_t *size, const unsigned char **value);

#endif
