/* Modules: cubins and fatbins are loaded unchanged; PTX goes through the driver's compiler. */
#include "beyond.h"
#include "cuhip.h"

#include <stdio.h>

enum { LOG_BYTES = 8192, HIGHEST_LEVEL = 4 };

/* The optimisation level that mgpuModuleLoadJIT sets; -1 stands for the driver's default level. */
static __thread int jit_level __attribute__((tls_model("initial-exec"))) = -1;

void mgpu_cuhip_jit_level(int level) {
    jit_level = level;
}

/* PTX begins with text. An ELF or a fatbin has a byte among its first four bytes that is no text.
 */
static bool is_text(const unsigned char *bytes) {
    for (int i = 0; i < 4 && bytes[i]; i++)
        if (bytes[i] >= 127 || (bytes[i] < 32 && (bytes[i] < '\t' || bytes[i] > '\r')))
            return false;
    return bytes[0] != '\0';
}

/* The compiler's log explains a failure, as in LLVM's own library for CUDA. */
static hipError_t compile(hipModule_t *module, const void *text) {
    char log[LOG_BYTES] = "";
    int options[3] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                      CU_JIT_OPTIMIZATION_LEVEL};
    void *values[3] = {log, (void *)(uintptr_t)sizeof log, (void *)(intptr_t)jit_level};
    const unsigned count = jit_level >= 0 && jit_level <= HIGHEST_LEVEL ? 3 : 2;
    const CUresult result = cuda.ModuleLoadDataEx(module, text, count, options, values);
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "JIT compilation failed with: '%s'\n", log);
    return from_cuda(result);
}

hipError_t module_load(hipModule_t *module, const void *image) {
    if (!module || !image)
        return hipErrorInvalidValue;
    return is_text(image) ? compile(module, image) : from_cuda(cuda.ModuleLoadData(module, image));
}

/* HIP and the driver have equal numbers for the options of a load. */
hipError_t module_load_with(hipModule_t *module, const void *image, unsigned count, int *options,
                            void **values) {
    if (!module || !image)
        return hipErrorInvalidValue;
    if (count == 0)
        return module_load(module, image);
    return from_cuda(cuda.ModuleLoadDataEx(module, image, count, options, values));
}

hipError_t module_unload(hipModule_t module) {
    if (!module)
        return hipErrorNotFound;
    launch_invalidate();
    return from_cuda(cuda.ModuleUnload(module));
}

hipError_t module_function(hipFunction_t *function, hipModule_t module, const char *name) {
    if (!function || !name)
        return hipErrorInvalidValue;
    if (!module || !name[0])
        return hipErrorNotFound;
    return from_cuda(cuda.ModuleGetFunction(function, module, name));
}

hipError_t module_global(void **address, size_t *bytes, hipModule_t module, const char *name) {
    if (!name || (!address && !bytes))
        return hipErrorInvalidValue;
    return module ? from_cuda(cuda.ModuleGetGlobal(address, bytes, module, name))
                  : hipErrorNotFound;
}
