/* Loads an image for the program, by another slot of the thread, the table of images, or HIP. */
#ifndef MGPU_RT_MODULES_LOAD_H
#define MGPU_RT_MODULES_LOAD_H

#include "modules/modules.h"

/* Returns the module that is the program's now, or why there is none. Reports nothing. */
struct load module_load(struct thread *thread, const void *data);

#endif
