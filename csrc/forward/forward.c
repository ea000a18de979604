/* Forwards calls from another library name of LLVM's to libmlir_rocm_runtime.so, for packages that
 * cannot contain links. In a wheel each link would be a copy, and a process with two copies would
 * have two runtimes.
 *
 * This library is a filter (DT_FILTER): the loader opens libmlir_rocm_runtime.so in the same folder
 * and takes every function from there. The functions below exist so that a linker finds the names;
 * no program ever calls them. */
#define MGPU_FN(result, name, ...)                                                                 \
    void name(void) {                                                                              \
        __builtin_trap();                                                                          \
    }
#define MGPU_VOID(name, ...) MGPU_FN(void, name)
#include "../abi.def"
