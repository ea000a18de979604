/* Pinned host memory that serves as the intermediate buffer for copies of pageable memory.
 *
 * A copy of pageable memory blocks the host: HIP copies through its own buffer or pins the pages. A
 * copy from pinned memory to the device is submitted, and the host continues. A staged copy from
 * the device waits for the stream. The program's next synchronisation finds the stream idle, and
 * does not wait again. */
#ifndef MGPU_RT_STAGING_H
#define MGPU_RT_STAGING_H

#include "streams/streams.h"

struct cache;

/* bench/results/copies.md has the times by which these sizes were chosen. To the device, a staged
 * copy does not wait for the work before it, and an idle stream has none. From the device, only
 * copies by NVIDIA's driver gain, and only small ones: one thread of the host copies the bytes once
 * more. AMD's HIP has pinned memory of its own for such copies. */
enum {
    STAGING_BYTES = 1 << 20,    /* the size of a stream's pinned memory */
    STAGING_UP_LIMIT = 1 << 19, /* the largest staged copy to the device */
    STAGING_UP_IDLE = 1 << 16,  /* the largest staged copy of an idle stream */
    STAGING_DOWN = 1 << 18,     /* the largest staged copy from the device */
    STAGING_COUNT = 16          /* 16 MB of pinned memory at most, for any number of streams */
};

/* During the call of a small copy to the device, NVIDIA's driver reads the bytes and does not wait.
 * So pinned memory would only add a copy on the host, which takes 0.7 µs. The benchmark churn takes
 * 16 µs in all on an H100. */
enum { STAGING_CUDA_TAKES = 16 << 10 };

/* A copy as the program requested it. */
struct copy {
    struct thread *thread;
    struct stream *stream; /* NULL: the stream is not in the table */
    hipStream_t handle;
    void *to;
    const void *from;
    size_t bytes;
};

/* Copies up to STAGING_UP_LIMIT bytes from the host to the device. When the call returns, the
 * source has been read. Returns false if there is no pinned memory or a query of the stream fails;
 * nothing was then copied. HIP must then make the copy. If the function returns true, *error is
 * HIP's answer. */
bool staging_up(const struct copy *copy, hipError_t *error);

/* Copies up to STAGING_DOWN bytes from the device to the host; when the call returns, all
 * bytes have arrived and the stream is idle. The result and *error have the same meaning as for
 * staging_up. */
bool staging_down(const struct copy *copy, hipError_t *error);

extern const struct cache staging_cache;

#endif
