/* Has somebody reset a device? */
#ifndef MGPU_RT_RESET_H
#define MGPU_RT_RESET_H

#include <stdbool.h>

struct cache;

/* Makes later resets of a device visible. To be called before a cache holds anything on it, while
 * it is the thread's current one. */
void device_watch(int device);

/* True if nobody has reset the device since device_watch. Otherwise invalidates all that the caches
 * hold on it. To be asked before a cache looks for what it holds there: what it finds afterwards is
 * HIP's still. Asked afterwards it is too late: another thread may have seen the reset and watch
 * the device again. Costs a question to HIP (0.1 µs), on AMD's devices, unless nobody else in the
 * process calls HIP. */
bool device_kept(int device);
/* Asks that of every device. */
void device_ask_all(void);

extern const struct cache reset_cache;

#endif
