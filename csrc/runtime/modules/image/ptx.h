/* Reads facts from the text of PTX, NVIDIA's assembly. */
#ifndef MGPU_RT_PTX_H
#define MGPU_RT_PTX_H

#include <stdbool.h>

/* Returns true if the text declares, or may declare, variables with this directive. Kernels can
 * write to ".global" variables; the other directive is ".const". */
bool ptx_has(const char *text, const char *directive);

#endif
