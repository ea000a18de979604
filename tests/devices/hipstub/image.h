/* Reads facts from a device image, without a device. The caller does not pass an image's size, so
 * the stub reads images through a system call that fails at unmapped memory. */
#ifndef HIPSTUB_IMAGE_H
#define HIPSTUB_IMAGE_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

/* Copies a whole image: an ELF code object, an offload bundle or a compressed bundle. The caller
 * owns the copy. Returns hipErrorInvalidKernelFile for an unknown format, and hipErrorInvalidImage
 * for a damaged image.
 */
hipError_t image_copy(const void *image, unsigned char **copy, size_t *bytes);

/* Returns whether the image contains a kernel of that name. Returns true for every compressed
 * image. */
bool image_has_kernel(const unsigned char *image, size_t bytes, const char *name);

/* Stores the size of a global variable and the address of its initial value. The address is NULL if
 * the memory is initially zero. Returns false if the symbol table lacks the variable. SHT_DYNSYM
 * selects the table of exported symbols, and SHT_SYMTAB the table of all symbols. */
bool image_global(const unsigned char *image, size_t bytes, unsigned table, const char *name,
                  size_t *size, const unsigned char **value);

#endif
