/* ROCr's thread, which runs HIP's code for commands that have finished. */
#ifndef MGPU_RT_ROCR_H
#define MGPU_RT_ROCR_H

/* Waits until that thread has ended the code for all commands that have finished so far. The code
 * frees what the commands hold: streams, kernels, modules. Returns after a second at most, as the
 * thread may be in a callback of the program. Returns at once without ROCr, as over NVIDIA's
 * driver. For exit only: not thread-safe. */
void rocr_catch_up(void);

#endif
