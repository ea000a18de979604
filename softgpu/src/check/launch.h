/* Passes a launch from the program's call to the device that executes the launch. The launch call
 * returns after the kernel's end, so the accesses of all ops arrive in the order of the calls. */
#ifndef SOFTGPU_CHECK_LAUNCH_H
#define SOFTGPU_CHECK_LAUNCH_H

#include "order.h"

/* Notes that the next call launches an op. */
void softgpu_launch_called(uint32_t op, const struct softgpu_clock *clock);
/* Waits, after HIP has accepted the launch, until the device is idle. A kernel may wait for a later
 * call, so the wait ends after a minute. The checker then no longer follows the order of ops. */
void softgpu_launch_await(void);

#endif
