/* Begins every call that names a stream. */
#ifndef MGPU_RT_MGPU_STREAM_H
#define MGPU_RT_MGPU_STREAM_H

#include "atomics.h"
#include "likely.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/thread.h"
#include "streams/lazy_sync.h"
#include "streams/streams.h"

/* Reports that the program uses a stream that it has destroyed, and returns false; returns true if
 * it was created again. */
bool stream_report_dead(struct stream **stream, const char *expression);

/* Checks a stream before each submission. Stores the stream's entry at *stream; NULL for streams
 * that the program made by calling HIP. Returns false if the program has destroyed the stream while
 * the cache holds it. The library then reports it as a failure of `expression`, and HIP is not to
 * see it. A handle that HIP has destroyed belongs to another stream by now, or HIP judges it. */
static inline bool stream_usable(const struct thread *thread, hipStream_t handle,
                                 struct stream **stream, const char *expression) {
    *stream = LIKELY(handle != NULL) ? stream_find(thread, handle) : stream_of_null();
    if (UNLIKELY(load_acquire(&lazy_pending)))
        PROOF_STEP(other_work_waits_for_what_was_put_off, lazy_settle(*stream));
    return LIKELY(!*stream || stream_is_live(*stream)) || stream_report_dead(stream, expression);
}

/* Waits as mgpuStreamSynchronize does; the expression is the one to report. */
void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression);

#endif
