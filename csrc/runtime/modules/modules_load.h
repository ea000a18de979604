/* Loads an image for the program, by another slot of the thread, the table of images, or HIP; and
 * unloads its module. */
#ifndef MGPU_RT_MODULES_LOAD_H
#define MGPU_RT_MODULES_LOAD_H

#include "modules/modules.h"

/* Returns the module that is the program's now, or why there is none. Reports nothing. */
struct load module_load(struct thread *thread, const void *data);

/* The outcome of an unload, and HIP's answer. */
struct module_unloaded {
    enum module_verdict {
        UNLOAD_DONE,   /* it stays cached, or a graph's */
        UNLOAD_TO_HIP, /* HIP was given the handle */
        UNLOAD_TWICE,  /* nothing: the program has unloaded it before */
    } verdict;
    hipError_t error;
};

/* Unloads a module as mgpuModuleUnload does. One that is not shared goes back to HIP at once, as
 * with stock: the next load is to see fresh globals. Reports nothing. */
struct module_unloaded module_unload(hipModule_t handle);

#endif
