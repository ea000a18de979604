/* Facts that the text of PTX, NVIDIA's assembly, tells. */
#ifndef MGPU_RT_PTX_H
#define MGPU_RT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the text declares variables by this directive: ".global", which kernels can
 * write, or ".const". A text that cannot be told for sure counts as one that does. */
bool ptx_has(const char *text, const char *directive);

/* Returns the next kernel at or after *position, which then points behind its name: its name, not
 * terminated, and *length of it. NULL if there is none. */
const char *ptx_next_kernel(const char **position, int *length);

#endif
