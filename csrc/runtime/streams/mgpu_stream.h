/* The begin of every call that names a stream. */
#ifndef MGPU_RT_MGPU_STREAM_H
#define MGPU_RT_MGPU_STREAM_H

#include "atomics.h"
#include "likely.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/thread.h"
#include "streams/lazy_sync.h"
#include "streams/streams.h"

/* Reports that the program uses a stream that it has destroyed, and returns false; true if that is
 * not so any more. */
bool stream_report_dead(struct stream **stream, const char *expression);

/* Checks a stream before each submission. Stores the entry of the stream at *stream; NULL for those
 * that the program made by HIP. False if the program has destroyed it while the cache holds it. The
 * library then reports it as a failure of `expression`, and HIP is not to see it. A handle that HIP
 * has back is somebody else's by now, or HIP's to judge. */
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
