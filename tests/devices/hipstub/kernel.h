/* Launches, and the bodies that tests give to kernels. */
#ifndef HIPSTUB_KERNEL_H
#define HIPSTUB_KERNEL_H

#include "objects.h"

/* Returns the module's global of that name, or NULL if the image has no such global. The first use
 * creates the global. The caller holds the lock. The global exists until the process ends. */
struct global *module_global(hipModule_t module, const char *name);

/* Launches a kernel with a configuration of hipDrvLaunchKernelEx. The caller holds the lock. */
hipError_t kernel_launch_clusters(const void *config, hipFunction_t function, void **params,
                                  void **extra);

/* Frees the image of an unloaded module whose launches are all done. The caller holds the lock. */
void module_drop_image(hipModule_t module);

#endif
