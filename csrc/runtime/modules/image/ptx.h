/* Facts that the text of PTX, NVIDIA's assembly, tells. */
#ifndef MGPU_RT_PTX_H
#define MGPU_RT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the text declares variables by this directive: ".global", which kernels can
 * write, or ".const". Returns true, too, for a text that may or may not do so. */
bool ptx_has(const char *text, const char *directive);

/* Returns the next kernel's name, not terminated, at or after *position, and *length; *position
 * then points behind it. Returns NULL if there is none. */
const char *ptx_next_kernel(const char **position, int *length);

#endif
