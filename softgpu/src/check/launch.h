/* Passes the launch that the program calls to the device that executes it. The call returns once
 * the kernel has ended, so the accesses of all ops come in the order of the calls. */
#ifndef SOFTGPU_CHECK_LAUNCH_H
#define SOFTGPU_CHECK_LAUNCH_H

#include "order.h"

/* Notes that the launch of an op is about to be called. */
void softgpu_launch_called(uint32_t op, const struct softgpu_clock *clock);
/* Waits, once HIP has accepted the launch, until the device has no more work. A kernel that waits
 * for a later call would never end: after a minute the wait ends, and the order of ops is lost. */
void softgpu_launch_await(void);

#endif
