/* The environments of hipSPARSE and cuSPARSE (their handles), which mgpuCreateSparseEnv and
 * mgpuDestroySparseEnv would make and destroy: 1 ms and more, and memory of the device.
 *
 * An environment has memory of the device that its kernels work in, and a stream for them. So an
 * environment serves one call at a time, and one stream for as long as it lives. Its later work on
 * that stream comes after its earlier work. Stock has one for the process, on the null stream. */
#ifndef MGPU_RT_ENVIRONMENTS_H
#define MGPU_RT_ENVIRONMENTS_H

#include "mgpu.h"

struct cache;

struct environment {
    void *handle; /* the library's */
    hipStream_t stream;
    int device;
    bool stale; /* in use while its device was reset */
    bool taken;
    uint64_t used; /* environment_uses at the last use */
    struct environment *next;
};

/* Returns an environment for a stream of the thread's current device, which no other call gets
 * until it is released. Returns NULL and the library's answer in *status if there is none. */
struct environment *environment_acquire(int device, hipStream_t stream, int *status);
void environment_release(struct environment *environment);

/* Destroys the environments of all devices that no call uses; returns how many. */
int environment_trim(int device);

extern const struct cache environment_cache;

#endif
