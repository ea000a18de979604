/* Reads facts from the text of PTX, NVIDIA's assembly. */
#ifndef MGPU_RT_PTX_H
#define MGPU_RT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the text declares variables by this directive: ".global", which kernels can
 * write, or ".const". Also returns true for a text that may declare such variables. */
bool ptx_has(const char *text, const char *directive);

/* Returns the next kernel's name, not terminated, at or after *position, and *length; *position
 * then points behind the name. Returns NULL if there is no further name. */
const char *ptx_next_kernel(const char **position, int *length);

#endif
