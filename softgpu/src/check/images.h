/* The images that the program loads as modules. A report names the image of its kernel, because the
 * image contains the line table. ROCr does not copy line tables into device memory.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_IMAGES_H
#define SOFTGPU_CHECK_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Stores a copy of an ELF image that HIP has just loaded, and ignores other formats. */
void softgpu_image_add(const void *image);

/* Finds the image of the code at an address. *number: the image's number, from 0; *offset: the
 * offset of the code in the image. Also stores the image in a file, whose name is the report file's
 * name with the image's number as suffix. */
bool softgpu_image_find(uint64_t va, unsigned *number, uint64_t *offset);

#endif
