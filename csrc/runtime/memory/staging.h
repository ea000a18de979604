/* Pinned host memory that serves as the intermediate buffer for copies of pageable memory.
 *
 * A copy of pageable memory blocks the host: HIP copies through its own buffer or pins the pages. A
 * copy from pinned memory to the device is submitted, and the host continues. A staged copy from
 * the device waits for the stream. The program's next synchronisation finds the stream idle, and
 * does not wait again. */
#ifndef MGPU_RT_STAGING_H
#define MGPU_RT_STAGING_H

#include "mgpu.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "streams/streams.h"

struct cache;

/* These times are from an H100 (driver 580, a kernel between two copies). A copy of 4 KB takes 19.8
 * µs, and 16.3 µs if staged. A copy of 64 KB takes 82.6 µs, and 36.9 µs if staged. A copy of 256 KB
 * takes 123 µs, and 58 µs if staged. A copy of 1 MB takes 342 µs, and 235 µs if staged. Copies of
 * more than 512 KB to the device gain nothing from staging. Copies of at most 16 MB from the
 * device, in overlapped pieces of 256 KB, gain from staging. From the device, a copy of 1 MB takes
 * 129 µs, and 95 µs if staged. A copy of 4 MB from the device takes 473 µs, and 424 µs if staged. A
 * copy of 16 MB from the device takes 1922 µs, and 1660 µs if staged. At 64 MB a staged copy is
 * slower (7.3 ms) than a copy of pageable memory (6.6 ms). */
enum {
    STAGING_UP = 1 << 20,       /* the size of a stream's pinned memory for copies to the device */
    STAGING_UP_LIMIT = 1 << 19, /* the largest staged copy to the device */
    STAGING_PIECE = 1 << 18,    /* the size of a piece of a copy from the device */
    STAGING_DOWN_LIMIT = 1 << 24, /* the largest staged copy from the device */
    STAGING_COUNT = 16            /* 32 MB of pinned memory at most, for any number of streams */
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

/* Copies up to STAGING_DOWN_LIMIT bytes from the device to the host; when the call returns, all
 * bytes have arrived and the stream is idle. The result and *error have the same meaning as for
 * staging_up. */
bool staging_down(const struct copy *copy, hipError_t *error);

extern const struct cache staging_cache;

#endif
