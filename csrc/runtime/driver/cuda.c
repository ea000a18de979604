#include "driver/cuda.h"

#include <dlfcn.h>

struct cuda_functions cuda;

void cuda_find(const char *path) {
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library)
        return;
#define CUDA_FN(result, name, params) *(void **)&cuda.name = dlsym(library, "mgpu_cuhip_" #name);
#include "driver/cuda.def"
#undef CUDA_FN
    dlclose(library); /* the runtime has opened the library */
}
