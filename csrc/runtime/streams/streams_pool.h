/* Manages the streams that the program does not hold: which thread gets them next, and which are
 * destroyed. */
#ifndef MGPU_RT_STREAMS_POOL_H
#define MGPU_RT_STREAMS_POOL_H

#include "atomics.h"
#include "driver/cuda.h"
#include "driver/exclusive.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "streams/streams.h"
#include "telemetry/call.h"

/* The number of streams that HIP holds for the library. */
extern size_t stream_pool_total;

/* Removes a stream from the table because HIP owns the handle again. A stream that the program
 * created by calling HIP remains. Returns false for such a stream, and if the stream was removed
 * before. */
bool stream_invalidate(struct stream *stream);

/* the stream for the program, or NULL and HIP's error */
struct stream_acquired {
    hipStream_t handle;
    enum call_how how; /* a hit, a miss or a bypass */
    hipError_t error;
};

/* Finds a stream after stream_lookup_thread has found none: the thread's external stream, an idle
 * stream of the device, or a new one. The stream then becomes the thread's last stream. May wait
 * for the device. */
struct stream_acquired stream_acquire(struct thread *thread, int device);

/* Puts a stream back that HIP reports as busy, or handles the reset if HIP reports the stream as
 * gone. Returns false. */
bool stream_refuse(struct stream *stream, hipError_t error);

/* Queries a stream that was just taken and that the library believes idle, because other code may
 * have used it. If the stream is not idle, it goes back to its pool.
 *
 * NVIDIA's driver is not asked, because its answer takes 1.6 of a launch's 9 µs. The risk is small,
 * because only other code that destroys a stream without waiting can leave work on it. In that case
 * the other code's work runs before the next owner's work. */
static inline bool stream_confirm(struct stream *stream) {
    if (exclusive_hip() || cuda_present())
        return true;
    const hipError_t error = PROOF_VALUE(others_left_no_work, stream_ask(stream), hipSuccess);
    return LIKELY(error == hipSuccess) || stream_refuse(stream, error);
}

/* Returns the hit of a create: the thread's last stream. The program does not hold that stream, the
 * stream is idle, and the thread has chosen no other stream in its place. */
static inline struct stream *stream_lookup_thread(struct thread *thread, int device) {
    struct stream *stream = thread->stream;
    if (UNLIKELY(!stream ||
                 !PROOF(own_stream_is_of_the_device, load_relaxed(&stream->device) == device) ||
                 thread->external))
        return NULL;
    if (LIKELY(exclusive_hip()))
        return LIKELY(stream_change(stream, STREAM_IDLE, STREAM_LIVE)) ? stream : NULL;
    return PROOF(reset_before_stream_reuse, device_kept(device)) &&
                   stream_change(stream, STREAM_IDLE, STREAM_LIVE) && stream_confirm(stream)
               ? stream
               : NULL;
}

/* Returns true for the hit of a destroy. The stream is the thread's last, held by the program and
 * idle, and no more streams exist than may be idle. The stream becomes IDLE and remains the
 * thread's last stream. */
static inline bool stream_stays_cached(const struct stream *stream, hipStream_t handle) {
    return stream && stream_handle(stream) == handle &&
           PROOF(kept_stream_is_idle, stream_is_idle(stream)) &&
           !DOUBT(kept_stream_is_external, load_relaxed(&stream->external_users)) &&
           load_relaxed(&stream_pool_total) <= cache_limits.streams &&
           PROOF(destroyed_stream_is_held, stream_state(stream) == STREAM_LIVE);
}

/* Releases a stream that the program destroys: from now on other threads find it. While more
 * streams exist than the limit, one of them is destroyed by HIP. Returns false if the program does
 * not hold the stream. */
bool stream_release(struct stream *stream);

/* Returns true if a stream that the program does not hold has no pending work; the program never
 * holds a null stream. Asks HIP. */
bool stream_query_unheld(struct stream *stream);

/* Returns true if no work is known to be pending. HIP is queried about the streams that the program
 * does not hold. The streams that the program holds were idle at their last synchronise. */
bool stream_all_quiet(void);
/* Destroys, at the end of the process, the idle streams that the program does not hold, even those
 * destroyed with pending work. Afterwards waits until HIP has released the streams, which takes as
 * long as the work for which the null stream waits. */
void stream_trim_at_exit(void);

extern const struct cache stream_cache;

#endif
