/* Reads facts from the text of PTX, NVIDIA's assembly. */
#ifndef MGPU_RT_PTX_H
#define MGPU_RT_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the text declares, or may declare, variables with this directive. Kernels can
 * write to ".global" variables; the other directive is ".const". */
bool ptx_has(const char *text, const char *directive);

/* Finds the name of the next kernel, from *position on. Returns a pointer to the name, which is not
 * terminated, and stores the name's length in *length. Moves *position behind the name. Returns
 * NULL if there is no further name. */
const char *ptx_next_kernel(const char **position, int *length);

#endif
