/* Declares the functions that the runtime and libmgpu_rt_python.so (csrc/python) exchange by
 * mgpu_rt_python, a plugin_entry. The runtime opens that library only if MGPU_RT_RUNTIME is set,
 * and both are of one version. */
#ifndef MGPU_RT_PYTHON_PLUGIN_H
#define MGPU_RT_PYTHON_PLUGIN_H

#include "process/interpreter.h"
#include "process/mapped.h"

/* The functions of the runtime that csrc/python uses. */
struct python_host {
    const char *version;
    const char *library; /* the runtime's file, according to the loader */
    __typeof__(mapped_library) *mapped_library;
    __typeof__(mapped_home) *mapped_home;
    __typeof__(interpreter_find) *interpreter_find;
};

struct python_plugin {
    /* Releases the GIL if the calling thread holds it; take_back acquires the GIL again. */
    void *(*let_go)(void);
    void (*take_back)(void *gil);
    /* Creates the class that `wanted` names, in the interpreter that the program contains, or else
     * in a new one. The class's methods replace the library's functions. Returns false if the
     * thread has too little stack for Python. On any other failure, prints the reason and ends the
     * program with status 1. A user who requests a runtime does not want the program to run without
     * it. One thread at a time calls the function. */
    bool (*create)(const char *wanted);
};

/* Returns the functions of csrc/python, in the runtime. Opens it at the first call; if that fails,
 * ends the program. */
const struct python_plugin *python_get(void);

#endif
