/* Modules whose load was put off (MGPU_RT_LOAD=lazy). */
#ifndef MGPU_RT_CALLS_MODULE_H
#define MGPU_RT_CALLS_MODULE_H

#include "cache/lazy_load.h"

/* Has HIP load it unless that was done, as `kernel` is asked for. NULL if HIP refuses the image,
 * which is reported. */
hipModule_t module_load_deferred(struct deferred *deferred, const char *kernel);

#endif
