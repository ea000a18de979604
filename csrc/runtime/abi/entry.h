/* The exported functions, for an override to call. */
#ifndef MGPU_RT_ENTRY_H
#define MGPU_RT_ENTRY_H

#include "mgpu_rt.h"

/* Returns this library's own function with a name, even if an override answers the program's calls
 * of that name. Returns NULL if no function has that name. */
mgpu_rt_function entry_native(const char *name);

#endif
