/* Clusters of workgroups on AMD's GPUs, which have them from gfx1250 on. */
#ifndef MGPU_RT_CLUSTERS_H
#define MGPU_RT_CLUSTERS_H

#include "launch/launch_advice.h"
#include "mgpu.h"

/* Launches in clusters of so many workgroups, of which the grid is a multiple. hipErrorNotSupported
 * if the thread's device has none, or HIP cannot be asked: hipDrvLaunchKernelEx is of HIP 7. An
 * older GPU would run the kernel without clusters. */
hipError_t clusters_launch(const struct launch *launch, dim3 cluster, bool cooperative);

#endif
