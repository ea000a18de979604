/* Functions that other folders call to ask about a loaded image. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

#include <stddef.h>

/* Records the loaded image in the record of the calling thread's call. Does nothing unless calls
 * are counted. */
void module_tell_image(const void *data);

/* Writes the name of an image's gpu.module to `name`, cut off at `size`; "" if the name is unknown.
 * MLIR derives the name of the constant that holds the image from the gpu.module's name. The symbol
 * table of the file that contains the constant has the name, unless the file was stripped. The name
 * is unknown for a JIT's image, and in a forked child. Reads the file, which takes milliseconds for
 * a large program, so the function runs once for each image. */
void image_module_name(const void *image, char *name, size_t size);

#endif
