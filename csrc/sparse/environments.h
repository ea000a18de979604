/* Caches the environments of hipSPARSE and cuSPARSE (their handles). The creation and destruction
 * of an environment take 1 ms or more, and an environment needs device memory.
 *
 * All kernels of an environment use the environment's device memory. Therefore an environment
 * serves only one call at a time, and all its calls use one stream. The stream runs the kernels of
 * a later call after the kernels of an earlier call. Stock has one environment for the process, on
 * the null stream. */
#ifndef MGPU_RT_ENVIRONMENTS_H
#define MGPU_RT_ENVIRONMENTS_H

#include "mgpu.h"

struct environment {
    void *handle; /* the library's */
    hipStream_t stream;
    int device;
    bool stale; /* a call was using the environment when its device was reset */
    bool taken;
    struct environment *next;
};

/* Returns an environment for a stream of the thread's current device; no other call gets the
 * environment until it is released. If no environment can be created, returns NULL and stores the
 * failure's status at *status. */
struct environment *environment_acquire(hipStream_t stream, int *status);
void environment_release(struct environment *environment);

/* Destroys all environments that no call is using, on all devices; returns how many. */
int environment_trim(int device);

/* Forgets the environments of a device that was reset, or of all devices. */
void environment_invalidate(int device);

#endif
