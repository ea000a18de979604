/* Waits for ROCr's thread, which runs HIP's code for finished commands. */
#ifndef MGPU_RT_ROCR_H
#define MGPU_RT_ROCR_H

/* Waits until ROCr's thread has run HIP's code for all commands that have finished so far. HIP's
 * code frees the resources of the commands: streams, kernels, modules. Returns after at most 20
 * seconds, because the thread may be in a callback of the program. Returns at once if there is no
 * ROCr, for example over NVIDIA's driver. For exit only: not thread-safe. */
void rocr_catch_up(void);

#endif
