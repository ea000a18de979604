/* Python in the program (csrc/python), if MGPU_RT_RUNTIME is set. */
#ifndef MGPU_RT_PYTHON_H
#define MGPU_RT_PYTHON_H

#include "abi/python_plugin.h"

/* Returns the functions of csrc/python. Opens it at the first call; if that fails, ends the
 * program. */
const struct python_plugin *python_get(void);

#endif
