/* Advice about a launch that the driver refused. */
#ifndef MGPU_RT_LAUNCH_ADVICE_H
#define MGPU_RT_LAUNCH_ADVICE_H

#include "mgpu.h"

/* A launch as the program asked for it. */
struct launch {
    hipFunction_t function;
    intptr_t grid[3], block[3];
    int32_t smem;
    hipStream_t stream;
    void **params, **extra;
};

static inline dim3 dim3_of(const intptr_t size[3]) {
    return (dim3){(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]};
}

/* Reports that the driver refused a launch; by the metadata of the kernel's image, if the block is
 * larger than what it was compiled for. Asks HIP nothing. */
void advise_launch(const char *expression, hipError_t error, const struct launch *launch);

#endif
