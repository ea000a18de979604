/* Has somebody reset a device? */
#ifndef MGPU_RT_RESET_H
#define MGPU_RT_RESET_H

#include "driver/exclusive.h"

#include <stdbool.h>

struct cache;

/* Before something is kept on a device that is the thread's current one: from now on it shows if
 * somebody resets it. */
void device_watch(int device);

/* To be asked before the library looks for anything kept on a device, to use it again or give it
 * back. True if nobody has reset the device since device_watch. Otherwise all that is of that
 * device is forgotten (caches_invalidate), so that what is found afterwards is HIP's still. Asked
 * afterwards it is too late: another thread may have seen the reset meanwhile, and watch the device
 * anew. Costs a question to HIP (0.1 µs), on AMD's devices, unless nobody else in the process calls
 * HIP. */
bool watch_ask(int device);
static inline bool device_kept(int device) {
    return exclusive_hip() || watch_ask(device);
}
/* The same of every device. */
void device_ask_all(void);

extern const struct cache watch_cache;

#endif
