/* Functions by which other folders ask about a loaded image. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

#include <stddef.h>

/* Tells the calling thread's call which image it has loaded. Does nothing unless calls are
 * counted. */
void module_tell_image(const void *data);

/* Writes the name of the gpu.module of an image to `name`, cut off at `size`; "" if it is not
 * known. MLIR names the constant that holds the image by that name. The symbol tables of the file
 * that holds the constant have the name, unless the file was stripped. The name is not known for a
 * JIT's image, nor in a child of fork. Reads the file, which takes milliseconds for a large
 * program, so once for an image. */
void image_module_name(const void *image, char *name, size_t size);

#endif
