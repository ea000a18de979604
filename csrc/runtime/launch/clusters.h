/* Clusters of workgroups on AMD's GPUs, which have them from gfx1250 on. */
#ifndef MGPU_RT_CLUSTERS_H
#define MGPU_RT_CLUSTERS_H

#include "mgpu.h"

struct cluster_launch {
    hipFunction_t function;
    dim3 grid, block, cluster; /* the grid is counted in workgroups */
    unsigned smem;
    bool cooperative;
    hipStream_t stream;
    void **params, **extra;
};

/* Launches in clusters. hipErrorNotSupported if the thread's device has none, or HIP cannot be
 * asked: hipDrvLaunchKernelEx is of HIP 7. An older GPU would run the kernel without clusters. */
hipError_t clusters_launch(const struct cluster_launch *launch);

#endif
