/* Finds the Python interpreter that was recorded when mgpu_rt was built or installed. */
#ifndef MGPU_RT_INTERPRETER_H
#define MGPU_RT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/* Returns the interpreter that MGPU_RT_MANAGER names. Otherwise returns the interpreter that make
 * recorded in mgpu_rt.python beside the library, or that pip wrote into the first line of the
 * command mgpu-rt. Returns false if there is none. Reads files. */
bool interpreter_find(char path[PATH_MAX]);

#endif
