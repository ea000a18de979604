/* Functions about loaded images, for the callers in other folders. */
#ifndef MGPU_RT_MGPU_MODULE_H
#define MGPU_RT_MGPU_MODULE_H

#include <stddef.h>

/* Records which image the current call has loaded. If the library does not count calls, this
 * function does nothing. */
void module_tell_image(const void *data);

/* Writes the name of an image's gpu.module to `name`, cut off at `size`; "" if the name is unknown.
 * The image is a constant of the program, and MLIR names this constant after the gpu.module. The
 * function finds the constant's name in the symbol table of the program's file, unless the file was
 * stripped. The name is also unknown if a JIT has compiled the image, or if the process is a forked
 * child. The function reads the program's file, which takes milliseconds for a large program. So
 * the library calls the function only once for each image. */
void image_module_name(const void *image, char *name, size_t size);

#endif
