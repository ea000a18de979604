/* Launches, and the bodies that tests give to kernels. */
#ifndef HIPSTUB_KERNEL_H
#define HIPSTUB_KERNEL_H

#include "objects.h"

/* Returns a module's global of that name, made at its first use; NULL if the image has none. The
 * caller has the lock. The global lives as long as the process. */
struct global *module_global(hipModule_t module, const char *name);

/* Launches a kernel by the configuration of hipDrvLaunchKernelEx. The caller has the lock. */
hipError_t kernel_launch_clusters(const void *config, hipFunction_t function, void **params,
                                  void **extra);

/* Frees the image of a module that is unloaded and whose launches are done. The caller has the
 * lock. */
void module_drop_image(hipModule_t module);

#endif
