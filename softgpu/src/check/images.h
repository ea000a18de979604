/* The images that the program loads as modules. A report names the image that its kernel came from,
 * as the image's line table knows the line. ROCr keeps no line tables in the device's memory.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_IMAGES_H
#define SOFTGPU_CHECK_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Keeps a copy of an ELF image; images of other forms are not kept. */
void softgpu_image_add(const void *image);

/* Finds the image of the code at an address. *number: the image's, counted from 0; *offset: the
 * code's address within it. The image is then in a file with the name of the reports' file and
 * ".number". */
bool softgpu_image_find(uint64_t va, unsigned *number, uint64_t *offset);

#endif
