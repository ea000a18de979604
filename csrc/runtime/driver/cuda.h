/* The functions that only a library for NVIDIA's GPUs has, in addition to the functions of
 * hip.h. */
#ifndef MGPU_RT_CUDA_H
#define MGPU_RT_CUDA_H

#include "mgpu.h"

struct cuda_functions {
#define CUDA_FN(result, name, params) result(*name) params;
#include "driver/cuda.def"
};

/* Each pointer is NULL unless the library that serves as HIP is csrc/cuhip. */
extern struct cuda_functions cuda;

static inline bool cuda_present(void) {
    return cuda.jit_level != NULL;
}

#endif
