/* Passes a launch from the program's call to the device that executes the launch. A launch call
 * returns after the kernel's end, so the checker sees all accesses in the order of the calls. */
#ifndef SOFTGPU_CHECK_LAUNCH_H
#define SOFTGPU_CHECK_LAUNCH_H

#include "order.h"

/* Notes the op and the clock of the next launch. */
void softgpu_launch_called(uint32_t op, const struct softgpu_clock *clock);
/* Waits, after HIP has accepted the launch, until the device is idle. The wait ends after a minute,
 * because a kernel may wait for a later call. After such a timeout, the checker no longer follows
 * the order of ops. */
void softgpu_launch_await(void);

#endif
