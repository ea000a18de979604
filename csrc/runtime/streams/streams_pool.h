/* Manages the streams that the program does not hold: decides which thread gets a stream next, and
 * which streams HIP destroys. */
#ifndef MGPU_RT_STREAMS_POOL_H
#define MGPU_RT_STREAMS_POOL_H

#include "streams/streams.h"

/* The number of streams that HIP holds for the library. */
extern size_t stream_pool_total;

/* Removes a stream from the table because HIP owns the handle again. A stream that the program
 * created by calling HIP stays in the table, and so does a stream that a thread has taken. */
void stream_invalidate(struct stream *stream);

/* Finds a stream after stream_lookup_thread has found none: the thread's external stream, an idle
 * stream of the device, or a new one. The stream then becomes the thread's last stream. May wait
 * for the device. Stores the handle, and returns HIP's answer. */
hipError_t stream_acquire(struct thread *thread, int device, hipStream_t *handle);

/* Puts the stream back into its pool if HIP reports it as busy; handles the reset if HIP reports
 * the stream as gone. Returns false. */
bool stream_refuse(struct stream *stream, hipError_t error);

/* Checks that a stream which the caller has just taken is really idle, because other code may have
 * used the stream. Returns a busy stream to its pool.
 *
 * Does not query NVIDIA's driver: the query takes 1.6 µs, and a whole launch takes 9 µs. The risk
 * is small, because only other code that destroys a stream without waiting can leave work on it.
 * Work that other code has left on a stream runs before the work of the stream's next owner. */
static inline bool stream_confirm(struct stream *stream) {
    if (exclusive_hip() || cuda_present() || PROOF(nobody_has_used_the_stream, witness_confirms()))
        return true;
    const hipError_t error = PROOF_VALUE(others_left_no_work, stream_ask(stream), hipSuccess);
    return LIKELY(error == hipSuccess) || stream_refuse(stream, error);
}

/* Returns true if no other code can have reached the thread's last stream, on this device, which
 * the caller has just taken for the program. Otherwise gives the stream back. */
bool stream_confirm_own(struct stream *stream, int device);

/* Returns the thread's last stream if the stream serves a hit of mgpuStreamCreate; otherwise NULL.
 * A hit needs an idle stream of this device that the program does not hold, and a thread without an
 * external stream. The library asks about other code after the take. Otherwise another thread could
 * get the stream in between, let other code work on it, and destroy it. */
static inline struct stream *stream_lookup_thread(struct thread *thread, int device) {
    struct stream *stream = thread->stream;
    if (UNLIKELY(!stream ||
                 DOUBT(own_stream_is_of_another_device, load_relaxed(&stream->device) != device) ||
                 thread->external))
        return NULL;
    if (UNLIKELY(!stream_change(stream, STREAM_IDLE, STREAM_LIVE)))
        return NULL;
    return LIKELY(PROOF(word_covers_own_stream, exclusive_hip())) ||
                   stream_confirm_own(stream, device)
               ? stream
               : NULL;
}

/* Returns true if mgpuStreamDestroy of this handle is a hit. For a hit, the stream must be idle,
 * the thread's last stream, and held by the program. The number of streams must not exceed the
 * limit of idle streams, or the stream is still in the queue, to which the limit applies. After a
 * hit, the stream is IDLE and remains the thread's last stream. */
static inline bool stream_stays_cached(const struct stream *stream, hipStream_t handle) {
    return stream && stream_handle(stream) == handle &&
           PROOF(kept_stream_is_idle, stream_is_idle(stream)) &&
           PROOF(kept_stream_is_not_external, !load_relaxed(&stream->external_users)) &&
           (load_relaxed(&stream_pool_total) <= cache_limits.streams ||
            load_relaxed(&stream->queued.queue)) &&
           PROOF(destroyed_stream_is_held, stream_state(stream) == STREAM_LIVE);
}

/* Releases a stream that the program destroys: from now on other threads find it. While the queues
 * contain more streams than the limit, the library destroys streams of the same device. Returns
 * false if the program does not hold the stream. */
bool stream_release(struct stream *stream);

/* Returns true if a stream that the program does not hold has no pending work. Sets *asked if the
 * library asked HIP. Returns false for a null stream, about which the library never asks
 * (docs/questions.md). */
bool stream_query_unheld(struct stream *stream, bool *asked);

/* Returns true if the library finds no pending work. Asks HIP only about streams that were
 * destroyed with pending work. For streams that the program holds, the library's record decides. */
bool stream_all_quiet(void);

/* Asks HIP whether the streams of a device that are at work are idle, up to the first that is not.
 * Does not ask about streams about which the library must not ask. Returns true if HIP was asked,
 * which may have cleared the thread's last error. No question waits. */
bool stream_query_all(int device);

/* Destroys, at the end of the process, the idle streams that the program does not hold. Also
 * destroys the streams that the program destroyed with pending work, if that work is done now.
 * Afterwards waits until HIP has released the resources of these streams (rocr_catch_up). */
void stream_trim_at_exit(void);

extern const struct cache stream_cache;

#endif
