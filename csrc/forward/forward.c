/* Forwards all calls to libmlir_rocm_runtime.so. LLVM also uses other file names for that library,
 * and some packages cannot contain symbolic links. In a wheel, for example, each link becomes a
 * copy, and a process with two copies would have two runtimes.
 *
 * This library is a filter (DT_FILTER): the loader opens libmlir_rocm_runtime.so in the same folder
 * and takes every function from that library. The functions below exist so that a linker finds the
 * names; no program ever calls them. */
#define MGPU_FN(result, name, ...)                                                                 \
    void name(void) {                                                                              \
        __builtin_trap();                                                                          \
    }
#include "../abi.def"
