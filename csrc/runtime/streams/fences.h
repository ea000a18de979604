/* Tracks how much of a stream's work is done. */
#ifndef MGPU_RT_FENCES_H
#define MGPU_RT_FENCES_H

#include "atomics.h"
#include "check.h"
#include "driver/exclusive.h"
#include "proof.h"
#include "shared/types.h"

/* ---- whether a stream is idle ----
 *
 * Each submission has a unique name, which is made from a thread's ticket. A thread that waits
 * reads the name of the last submission, waits, and then stores that name as completed. The stream
 * is idle while the name of the last submission is equal to the completed name. Threads may submit
 * and wait at once without a locked operation. A name that is overwritten, or completed late, never
 * makes these two names equal while work is pending. */

/* Returns true if all submitted work is known to be done. The order of the two reads matters:
 * otherwise a wait for earlier work could seem to cover later work. */
static inline bool stream_is_idle(const struct stream *stream) {
    const uint64_t completed = load_acquire(&stream->completed);
    return load_acquire(&stream->submitted) == completed;
}

/* Returns true if no code can have submitted work since the last wait, so that HIP need not be
 * asked. */
static inline bool stream_is_known_idle(const struct stream *stream) {
    return PROOF(nobody_else_calls_hip, exclusive_hip()) && stream_is_idle(stream) &&
           PROOF(stream_was_made_here, load_acquire(&stream->state) == STREAM_LIVE);
}

/* Records that all submitted work is done, or that this library need not wait for it. */
static inline void stream_complete_all(struct stream *stream) {
    store_release(&stream->completed, load_acquire(&stream->submitted));
}

/* ---- fences: what of a stream's past is done ----
 *
 * A fence covers all work that was submitted before the fence was set. Freed memory waits for the
 * stream's next fence. Each synchronise and each query sets a fence if a block waits for one. The
 * fence is done once HIP has answered. Fences become done in order. */

/* Returns the fence that covers all work submitted so far. */
static inline uint64_t stream_next_fence(struct stream *stream) {
    if (!load_relaxed(&stream->has_waiters))
        store_seq_cst(&stream->has_waiters, true);
    return load_seq_cst(&stream->fences) + PROOF_VALUE(next_fence_is_a_later_one, 1, 0);
}

/* Sets a fence, before HIP is asked to wait. Returns 0 if no block waits for a fence. */
static inline uint64_t stream_set_fence(struct stream *stream) {
    return stream && load_acquire(&stream->has_waiters) ? add_fetch_seq_cst(&stream->fences, 1) : 0;
}

/* Completes a fence, once all earlier ones are done. */
static inline void stream_complete_fence(struct stream *stream, uint64_t fence) {
    uint64_t done = fence ? load_relaxed(&stream->fences_done) : 0;
    CHECK(fence <= load_seq_cst(&stream->fences));
    while (done < fence && !cas_weak_release(&stream->fences_done, &done, fence))
        continue;
}

static inline bool stream_fence_done(const struct stream *stream, uint64_t fence) {
    return load_acquire(&stream->fences_done) >= fence;
}

/* Records that all work that was submitted before the query to HIP is done. The stream is now idle,
 * unless another thread has submitted work since. */
static inline void stream_complete(struct stream *stream, uint64_t submitted, uint64_t fence) {
    stream_complete_fence(stream, fence);
    store_release(&stream->completed, PROOF_VALUE(wait_covers_what_came_before, submitted,
                                                  load_acquire(&stream->submitted)));
}

#endif
