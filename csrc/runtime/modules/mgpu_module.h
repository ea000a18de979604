/* Questions of other rooms about an image that is loaded. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

#include <stddef.h>

/* Tells the calling thread's call which image it has loaded. Does nothing if nothing is counted. */
void module_tell_image(const void *data);

/* Writes the name of the gpu.module that an image was made of to `name`, cut off at `size`; "" if
 * it is not known. MLIR names the constant that it puts the image into by it. The symbol tables of
 * the file that holds the constant have that name, unless the file was stripped. Nothing is known
 * of what a JIT makes, nor in a child of fork. Reads the file: milliseconds for a large program, so
 * once for an image. */
void image_module_name(const void *image, char *name, size_t size);

#endif
