/* Tells how much of a stream's work is done. */
#ifndef MGPU_RT_FENCES_H
#define MGPU_RT_FENCES_H

#include "atomics.h"
#include "check.h"
#include "driver/exclusive.h"
#include "proof.h"
#include "shared/types.h"

/* ---- whether a stream is idle ----
 *
 * Each submission has a name of its own, made of a thread's ticket. A thread that waits reads the
 * name of the last submission, waits, and then stores it as completed. The stream is idle while
 * both are equal. Threads may submit and wait at once without a locked operation. A name that is
 * overwritten, or completed late, never makes the two equal while work is pending. */

/* Returns true if all that was submitted is known to be done. In this order: the other one would
 * take a wait for earlier work for one that covers later work too. */
static inline bool stream_is_idle(const struct stream *stream) {
    const uint64_t completed = load_acquire(&stream->completed);
    return load_acquire(&stream->submitted) == completed;
}

/* Returns true if nothing was submitted since the last wait, and nobody else could have: HIP need
 * not be asked. */
static inline bool stream_is_known_idle(const struct stream *stream) {
    return PROOF(nobody_else_calls_hip, exclusive_hip()) && stream_is_idle(stream) &&
           PROOF(stream_was_made_here, load_acquire(&stream->state) == STREAM_LIVE);
}

/* Notes that all that was submitted so far is done, or that nobody waits for it here. */
static inline void stream_complete_all(struct stream *stream) {
    store_release(&stream->completed, load_acquire(&stream->submitted));
}

/* ---- fences: what of a stream's past is done ----
 *
 * A fence stands for all that was submitted before it was set. Freed memory waits for the stream's
 * next fence. Each synchronise and each query sets one, if anything waits. Once HIP has answered,
 * the fence is done. Fences are done in order. */

/* Returns the fence that covers everything submitted so far. */
static inline uint64_t stream_next_fence(struct stream *stream) {
    if (!load_relaxed(&stream->has_waiters))
        store_seq_cst(&stream->has_waiters, true);
    return load_seq_cst(&stream->fences) + PROOF_VALUE(next_fence_is_a_later_one, 1, 0);
}

/* Sets a fence, before HIP is asked to wait. Returns 0 if nothing waits for a fence. */
static inline uint64_t stream_set_fence(struct stream *stream) {
    return stream && load_acquire(&stream->has_waiters) ? add_fetch_seq_cst(&stream->fences, 1) : 0;
}

/* Completes a fence, once all before it is done. */
static inline void stream_complete_fence(struct stream *stream, uint64_t fence) {
    uint64_t done = fence ? load_relaxed(&stream->fences_done) : 0;
    CHECK(fence <= load_seq_cst(&stream->fences));
    while (done < fence && !cas_weak_release(&stream->fences_done, &done, fence))
        continue;
}

static inline bool stream_fence_done(const struct stream *stream, uint64_t fence) {
    return load_acquire(&stream->fences_done) >= fence;
}

/* Notes that all that was submitted before HIP was asked is done. The stream is idle now unless
 * somebody has submitted since. */
static inline void stream_complete(struct stream *stream, uint64_t submitted, uint64_t fence) {
    stream_complete_fence(stream, fence);
    store_release(&stream->completed, PROOF_VALUE(wait_covers_what_came_before, submitted,
                                                  load_acquire(&stream->submitted)));
}

#endif
