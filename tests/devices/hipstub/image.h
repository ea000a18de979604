/* What can be said of a device image without a device. Images come from memory whose extent the
 * caller does not tell, so all is read through the kernel, which refuses what is not mapped. */
#ifndef HIPSTUB_IMAGE_H
#define HIPSTUB_IMAGE_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

/* Copies a whole image: an ELF code object, an offload bundle, a compressed one. The caller owns
 * the copy. hipErrorInvalidKernelFile for foreign bytes, hipErrorInvalidImage for a broken image.
 */
hipError_t image_copy(const void *image, unsigned char **copy, size_t *bytes);

/* Returns whether the image holds a kernel of that name; a compressed one may hold any. */
bool image_has_kernel(const unsigned char *image, size_t bytes, const char *name);

/* Returns the size of a global variable and, unless it is zeroed memory, its initial value; false
 * if there is none of that name in the symbol table of this type: SHT_DYNSYM, what the image
 * exports, or SHT_SYMTAB, all that its kernels know. */
bool image_global(const unsigned char *image, size_t bytes, unsigned table, const char *name,
                  size_t *size, const unsigned char **value);

#endif
