/* Reports launches that the driver refuses, or cuts. */
#ifndef MGPU_RT_LAUNCH_ADVICE_H
#define MGPU_RT_LAUNCH_ADVICE_H

#include "mgpu.h"

/* The arguments of a launch. */
struct launch {
    hipFunction_t function;
    intptr_t grid[3], block[3];
    int32_t smem;
    hipStream_t stream;
    void **params, **extra;
};

/* Returns whether a size of the grid or of a block needs more than 32 bits. HIP gets the low 32
 * bits, as with stock. */
static inline bool launch_is_cut(const struct launch *launch) {
    const intptr_t *grid = launch->grid, *block = launch->block;
    return (uint64_t)(grid[0] | grid[1] | grid[2] | block[0] | block[1] | block[2]) >> 32 != 0;
}

/* Reports that the driver refused a launch of a function that is not null. The report names the
 * limit that the launch exceeds, if it is known, and leaves the thread's last error as it is. */
void launch_report(const char *expression, hipError_t error, const struct launch *launch);

/* Prints what HIP has run, if HIP has cut the sizes of a launch, which then counts as failed. */
void launch_report_cut(const struct launch *launch);

#endif
