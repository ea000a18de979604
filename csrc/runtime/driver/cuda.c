#include "driver/cuda.h"

#include <dlfcn.h>

struct cuda_functions cuda;

void cuda_resolve(struct cuda_functions *functions, void *library) {
#define CUDA_FN(result, name, params)                                                              \
    *(void **)&functions->name = dlsym(library, "mgpu_cuhip_" #name);
#include "driver/cuda.def"
}
