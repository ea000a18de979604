/* What the manager may ask of the caches, and have done: each cache implements its own part.
 *
 * Every function is thread-safe. The listing and counting ones call nothing of HIP's; the evicting
 * ones take the entry out of its table first, so that no call of the program's can get it any more,
 * and then give it back to HIP. No lock of the runtime's is held while they return to the manager.
 */
#ifndef MGPU_RT_MANAGE_H
#define MGPU_RT_MANAGE_H

#include "base/abi.h"

/* One thing that a cache holds from HIP. */
struct cached {
    void *handle;  /* module, stream, or address of the block */
    size_t bytes;  /* 0 for a stream */
    uint64_t uses; /* how often the program was given it */
    int device;
    int held; /* the program has it now */
};

/* Copies up to `room` entries; returns how many there are. */
size_t module_list(struct cached *out, size_t room);
size_t stream_list(struct cached *out, size_t room);
size_t block_list(struct cached *out, size_t room);

/* Unloads, destroys or frees what nobody holds and no work needs. hipSuccess; hipErrorNotReady if
 * it has to stay; hipErrorNotFound if it is not in the table; else HIP's error. */
hipError_t module_evict(void *handle);
hipError_t stream_evict(void *handle);
hipError_t block_evict(void *address);

/* A pinned module is not evicted by a limit, only by module_evict and mgpu_rt_empty_cache. */
void module_pin(void *handle, int pinned);

#endif
