/* MGPU_RT_LOAD=lazy: the load that was put off (cache/lazy_load.h). */
#ifndef MGPU_RT_CALLS_LAZY_LOAD_H
#define MGPU_RT_CALLS_LAZY_LOAD_H

#include "base/abi.h"

#include <stdbool.h>

/* Makes of the handle that the program has for a module the one that HIP has. If its load was put
 * off, HIP loads it now, as `name` is asked for: NULL if HIP refuses the image, which is reported.
 * False if its load was put off and the program has unloaded it. */
bool lazy_load(hipModule_t *handle, const char *name);

#endif
