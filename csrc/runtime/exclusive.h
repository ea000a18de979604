/* Whether this process calls HIP through this library only.
 *
 * Where that is so, the runtime knows of every submission, allocation and registration, and need
 * not ask HIP whether a stream is idle or what a pointer is. Where other code calls HIP too
 * (rocBLAS in the program, PyTorch beside it), it asks, as stock does. */
#ifndef MGPU_RT_EXCLUSIVE_H
#define MGPU_RT_EXCLUSIVE_H

#include <stdbool.h>

/* Before HIP is opened: takes note of who is there already. */
void exclusive_start(void);

/* MGPU_RT_EXCLUSIVE, or what the loader's list says: no HIP and no Python were there before this
 * library opened its own, and nothing that was loaded since is linked against HIP. Costs 30 ns, and
 * a walk over the list when that has changed. */
bool exclusive_hip(void);

#endif
