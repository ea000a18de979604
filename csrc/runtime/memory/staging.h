/* Pinned host memory through which copies of pageable memory go.
 *
 * HIP copies pageable memory by blocking the host: it stages or pins by itself. With memory that is
 * pinned already, a copy to the device is submitted and the host goes on. A copy from the device
 * waits for the stream once, so the program's synchronise need not wait again. */
#ifndef MGPU_RT_STAGING_H
#define MGPU_RT_STAGING_H

#include "mgpu.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "streams/streams.h"

struct cache;

/* Measured on an H100 (driver 580, kernel between two copies), pageable against staged: 4 KB 19.8
 * µs against 16.3, 64 KB 82.6 against 36.9. 256 KB took 123 µs against 58, 1 MB 342 against 235. To
 * the device, staging does not pay beyond 512 KB. From the device, in overlapped pieces of 256 KB,
 * it pays up to 16 MB. (1 MB takes 129 against 95, 4 MB 473 against 424, 16 MB 1922 against 1660.)
 * A copy at 64 MB costs more that way (6.6 ms against 7.3). */
enum {
    STAGING_UP = 1 << 20,         /* ring of a stream's copies to the device */
    STAGING_UP_LIMIT = 1 << 19,   /* the largest copy that is staged */
    STAGING_PIECE = 1 << 18,      /* of a copy from the device */
    STAGING_DOWN_LIMIT = 1 << 24, /* the largest copy from the device */
    STAGING_COUNT =
        16 /* of both, in the process: 32 MB of pinned memory at most, for any number of streams */
};

/* NVIDIA's driver takes the bytes of a small copy to the device and goes on. The driver does not
 * block, and pinned memory would only add a copy (0.7 of 16 µs in churn on an H100). */
enum { STAGING_CUDA_TAKES = 16 << 10 };

/* A copy as the program asked for it. */
struct copy {
    struct thread *thread;
    struct stream *stream; /* NULL: not in the table */
    hipStream_t handle;
    void *to;
    const void *from;
    size_t bytes;
};

/* Copies up to STAGING_UP_LIMIT bytes from the host to the device; the source has been read when
 * the call returns. Returns false if nothing was done, for want of room, pinned memory or a stream
 * of the table: HIP is to copy then. Otherwise HIP's answer is in *error. */
bool staging_up(const struct copy *copy, hipError_t *error);

/* Copies up to STAGING_DOWN_LIMIT bytes from the device to the host; all has arrived when the call
 * returns, and the stream is idle. False and *error as above. */
bool staging_down(const struct copy *copy, hipError_t *error);

extern const struct cache staging_cache;

#endif
