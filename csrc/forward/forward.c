/* A library with one of LLVM's names that leads to libmlir_rocm_runtime.so, for packages that
 * cannot hold links. In a wheel each link would be a copy, and a process with two of them would
 * have two runtimes.
 *
 * This library is a filter (DT_FILTER): the loader opens the one library beside it and takes every
 * function from there. The functions below exist so that a linker finds the names; none is ever
 * called. */
#define MGPU_FN(result, name, ...)                                                                 \
    void name(void) {                                                                              \
        __builtin_trap();                                                                          \
    }
#define MGPU_VOID(name, ...) MGPU_FN(void, name)
#include "../abi.def"
