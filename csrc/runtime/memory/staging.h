/* Pinned host memory that serves as the intermediate buffer for copies of pageable memory.
 *
 * A copy of pageable memory blocks the host: HIP copies through its own buffer or pins the pages. A
 * copy from pinned memory to the device is submitted, and the host continues. A copy from the
 * device waits for the stream once, so the program's next synchronisation need not wait again. */
#ifndef MGPU_RT_STAGING_H
#define MGPU_RT_STAGING_H

#include "mgpu.h"
#include "shared/thread.h"
#include "shared/types.h"
#include "streams/streams.h"

struct cache;

/* Times of a copy of pageable memory and of a staged copy, in µs, on an H100 (driver 580, a kernel
 * between two copies). 4 KB: 19.8 and 16.3; 64 KB: 82.6 and 36.9; 256 KB: 123 and 58; 1 MB: 342 and
 * 235. Copies to the device gain nothing from staging beyond 512 KB. Copies from the device, in
 * overlapped pieces of 256 KB, gain from staging up to a size of 16 MB. 1 MB: 129 and 95; 4 MB: 473
 * and 424; 16 MB: 1922 and 1660. At 64 MB a staged copy is slower (7.3 ms) than a copy of pageable
 * memory (6.6 ms). */
enum {
    STAGING_UP = 1 << 20,       /* the size of a stream's pinned memory for copies to the device */
    STAGING_UP_LIMIT = 1 << 19, /* the largest staged copy to the device */
    STAGING_PIECE = 1 << 18,    /* the size of a piece of a copy from the device */
    STAGING_DOWN_LIMIT = 1 << 24, /* the largest staged copy from the device */
    STAGING_COUNT = 16            /* 32 MB of pinned memory at most, for any number of streams */
};

/* For a small copy to the device, NVIDIA's driver reads the bytes during the call and returns. The
 * driver does not block, and pinned memory would only add a copy (0.7 of 16 µs in churn on an
 * H100). */
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

/* Copies up to STAGING_UP_LIMIT bytes from the host to the device; the source has been read when
 * the call returns. Returns false if the function did nothing: it got no pinned memory, or a query
 * of the stream failed. HIP must then make the copy. If the function returns true, *error is HIP's
 * answer. */
bool staging_up(const struct copy *copy, hipError_t *error);

/* Copies up to STAGING_DOWN_LIMIT bytes from the device to the host; when the call returns, all
 * bytes have arrived and the stream is idle. The result and *error have the meanings that
 * staging_up describes. */
bool staging_down(const struct copy *copy, hipError_t *error);

extern const struct cache staging_cache;

#endif
