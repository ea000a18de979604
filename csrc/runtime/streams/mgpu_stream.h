/* Handles the start of every call that names a stream. */
#ifndef MGPU_RT_MGPU_STREAM_H
#define MGPU_RT_MGPU_STREAM_H

#include "streams/lazy_sync.h"

/* Reports the use of a destroyed stream, and returns false, if the cache still contains the stream.
 * Otherwise stores NULL at *stream and returns true, because the handle may belong to a new stream.
 */
bool stream_report_dead(struct stream **stream, const char *expression);

/* Checks a stream before each submission. Stores the stream's entry at *stream; NULL for streams
 * that the program created by calling HIP. Returns false if the program has destroyed the stream
 * while the cache holds it. The library then reports a failure of `expression`, and does not call
 * HIP. If HIP has destroyed the stream, its handle may belong to a new stream: stores NULL at
 * *stream, and HIP judges the handle. */
static inline bool stream_usable(const struct thread *thread, hipStream_t handle,
                                 struct stream **stream, const char *expression) {
    *stream = LIKELY(handle != NULL) ? stream_find(thread, handle) : stream_of_null();
    if (UNLIKELY(load_acquire(&lazy_pending)))
        PROOF_STEP(other_work_waits_for_what_was_put_off, lazy_settle(*stream));
    return LIKELY(!*stream || stream_is_live(*stream)) || stream_report_dead(stream, expression);
}

/* Waits as mgpuStreamSynchronize does; reports a failure under the name `expression`. */
void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression);

#endif
