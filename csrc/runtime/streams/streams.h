/* Manages the streams that mgpuStreamCreate hands out, and tracks how much of their work is done.
 *
 * One shared stream suffices while the program holds one stream at a time; a program that holds
 * several streams at once gets several. A stream is reused only when idle: new work never waits for
 * another owner's work. */
#ifndef MGPU_RT_STREAMS_H
#define MGPU_RT_STREAMS_H

#include "check.h"
#include "driver/exclusive.h"
#include "driver/report.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "shared/types.h"

struct hip_functions;

extern struct handle_map stream_map;

static inline hipStream_t stream_handle(const struct stream *stream) {
    return (hipStream_t)stream->handle.key;
}

static inline int stream_state(const struct stream *stream) {
    return load_acquire(&stream->state);
}

/* Returns true if the table in types.h lists this transition as a compare-and-swap. */
CHECKS bool stream_may_change(int from, int to) {
    switch (from) {
    case STREAM_LIVE:
        return to == STREAM_IDLE || to == STREAM_TAKEN;
    case STREAM_IDLE:
        return to == STREAM_LIVE || to == STREAM_TAKEN;
    case STREAM_RETIRED:
        return to == STREAM_TAKEN;
    default:
        return from == STREAM_TAKEN && (to == STREAM_LIVE || to == STREAM_IDLE ||
                                        to == STREAM_RETIRED || to == STREAM_GONE);
    }
}

static inline bool stream_change(struct stream *stream, int from, int to) {
    CHECK(stream_may_change(from, to));
    return cas_acq_rel(&stream->state, &from, to);
}

/* Returns true if the library knows nothing about the stream's handle any longer. */
static inline bool stream_is_gone(const struct stream *stream) {
    return stream_state(stream) == STREAM_GONE;
}

/* Returns true if the program holds the stream, or created it by calling HIP. */
static inline bool stream_is_live(const struct stream *stream) {
    const int state = stream_state(stream);
    return LIKELY(state == STREAM_LIVE) || state == STREAM_EXTERNAL;
}

/* Returns the newest entry, and the next older one. Null streams and untracked work are not among
 * these entries. Some streams are gone. */
static inline struct stream *stream_first(void) {
    return handle_first(&stream_map);
}
static inline struct stream *stream_next(const struct stream *stream) {
    return handle_next(stream);
}

/* Returns the entry of a stream, or NULL if the runtime did not create the stream. A hit on the
 * thread's last stream costs 3 instructions. */
static inline struct stream *stream_find(const struct thread *thread, hipStream_t handle) {
    struct stream *last = thread->stream;
    return LIKELY(last && last->handle.key == handle) ? last : handle_find(&stream_map, handle);
}

/* ---- null streams and untracked work ----
 *
 * The null stream of a device has its own entry, which is in no table and is never removed.
 *
 * Untracked work is work on a stream that has no entry. A stream has no entry if there was no
 * memory for one, or if the program created it by calling HIP. If the program passes its stream to
 * mgpu_rt_use_stream, the stream gets an entry. Work is also untracked if HIP may continue the work
 * after destroying the stream. HIP may use the handle of a stream with untracked work for another
 * stream, without a call to this library. So only a wait for the device proves that the work is
 * done. For each device, one entry represents all untracked work. */
extern struct stream stream_null[MOST_DEVICES], stream_untracked[MOST_DEVICES];

/* Returns the entry of the current device's null stream. Returns NULL if the device has no entry.
 */
struct stream *stream_of_null(void);

/* Records that untracked work was submitted, or that work continues after the destruction of its
 * stream. If the program created the stream, the stream's device is unknown, and `device` is
 * ALL_DEVICES. */
void stream_note_untracked(int device);

/* ---- numbers: what of a stream's work is done ----
 *
 * A submission gets the stream's next number once HIP has it. A thread that waits for a stream, or
 * queries it, reads the last number, and then calls HIP. If HIP reports that the work is done, all
 * submissions up to this number are completed. The stream is idle while the last number is
 * completed.
 *
 * A freed block waits for a number, its fence. Work of other code has no number. So while other
 * code may call HIP, the fence is the next number. A wait then takes a number of its own, which
 * completes all earlier fences.
 *
 * STREAM_KERNEL in a number says that a kernel, or other work that writes host memory, may be
 * pending. STREAM_LISTED says that the list of streams at work contains the stream. If
 * STREAM_KERNEL is set, so is STREAM_LISTED. */
enum { STREAM_KERNEL = 1, STREAM_LISTED = 2, STREAM_NEXT = 4 };

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

/* Returns true if a block waits for the stream. */
static inline bool stream_has_blocks(const struct stream *stream) {
    return load_acquire(&stream->has_blocks);
}

/* Returns true if, as far as is known, each submission to the stream has a number. */
static inline bool stream_counts_all(const struct stream *stream) {
    return load_acquire(&stream->state) > STREAM_EXTERNAL && sole_user_so_far();
}

/* Returns the number for which a block waits that is freed now. In the same call of the library,
 * sole_user_of_hip must confirm what is known of other code. */
static inline uint64_t stream_fence(struct stream *stream) {
    if (UNLIKELY(!stream_has_blocks(stream)))
        store_seq_cst(&stream->has_blocks, true);
    const uint64_t last = load_seq_cst(&stream->submitted);
    return LIKELY(stream_counts_all(stream))
               ? last
               : last + PROOF_VALUE(next_fence_is_a_later_one, STREAM_NEXT, 0);
}

/* Begins a wait or a query of HIP; returns the number that is completed if HIP reports that the
 * work is done. */
static inline uint64_t stream_begin_wait(struct stream *stream) {
    return !stream_has_blocks(stream) || LIKELY(stream_counts_all(stream))
               ? load_acquire(&stream->submitted)
               : add_fetch_seq_cst(&stream->submitted, STREAM_NEXT);
}

/* Records that all submissions up to a number are done. Another thread may have completed a later
 * number just before; the stream then seems to be at work until the next wait. */
static inline void stream_complete(struct stream *stream, uint64_t number) {
    const uint64_t covered =
        PROOF_VALUE(wait_covers_what_came_before, number, load_acquire(&stream->submitted));
    CHECK(number <= load_acquire(&stream->submitted));
    if (load_relaxed(&stream->completed) < covered)
        store_release(&stream->completed, covered);
}

static inline bool stream_fence_done(const struct stream *stream, uint64_t fence) {
    return load_acquire(&stream->completed) >= fence;
}

/* ---- the list of streams that may be at work ----
 *
 * A free visits this list, so the free costs no more with more idle streams. A stream enters the
 * list at its first submission. Once a free has visited more than IDLE_LISTED_MOST streams without
 * pending work, such streams leave the list. Readers traverse the list without a lock. A removed
 * stream still links to the next, and a reinserted stream links to the first. Therefore no reader
 * misses a stream that stays in the list. */
enum { IDLE_LISTED_MOST = 16 };
extern struct stream *streams_listed;
static inline struct stream *stream_first_listed(void) {
    return load_acquire(&streams_listed);
}
static inline struct stream *stream_next_listed(const struct stream *stream) {
    return load_acquire(&stream->next_listed);
}

/* Inserts the stream into the list, unless the list contains it. `kernel` is STREAM_KERNEL or 0,
 * and is added to the stream's number. Returns the number. */
uint64_t stream_list(struct stream *stream, uint64_t kernel);

/* Removes the streams without pending work. Also removes streams that HIP has destroyed, unless a
 * block waits for their work. */
void stream_sweep_list(void);

/* Returns true if the stream is of the device that its entry names. Other code may have destroyed
 * the stream, and HIP may have given the handle to a stream of another device. */
static inline bool stream_keeps_device(const struct stream *stream) {
    return hip_device_count == 1 || !stream_handle(stream) || sole_user_of_hip();
}

/* ---- submissions ---- */

/* Returns whether a block that is freed now must wait for this stream's work. An external stream
 * that no thread uses may still have pending work. Work of a stream that HIP has destroyed is
 * untracked. */
static inline bool stream_is_at_work(const struct stream *stream) {
    return !stream_is_idle(stream) && (!stream_is_gone(stream) || stream_has_blocks(stream));
}

/* Returns true if kernels, or other work that writes host memory, may be pending. */
static inline bool stream_has_kernels(const struct stream *stream) {
    const uint64_t completed = load_acquire(&stream->completed);
    const uint64_t submitted = load_acquire(&stream->submitted);
    return submitted != completed && submitted & STREAM_KERNEL;
}

/* Marks the stream's numbers as including a kernel, and lists the stream. Not inlined, so that a
 * launch is short. */
void stream_note_kernel(struct stream *stream);

/* Gives a number to a kernel that HIP has. */
static inline void stream_add_kernel(struct stream *stream) {
    if (UNLIKELY(!(fetch_add_acq_rel(&stream->submitted, STREAM_NEXT) & STREAM_KERNEL)))
        stream_note_kernel(stream);
}

/* Records a launch that the caller has already made. The record follows the launch, so another
 * thread may synchronise between the launch and the record. In that case the stream stays marked as
 * busy, which costs a query but never causes a wrong reuse. */
static inline void stream_launched(struct stream *stream) {
    if (LIKELY(stream))
        PROOF_STEP(launch_marks_its_stream, stream_add_kernel(stream));
    else
        PROOF_STEP(launch_elsewhere_is_noted, stream_note_untracked(ALL_DEVICES));
}

/* Returns the last number of a stream that is about to get work, after listing the stream. */
static inline uint64_t stream_last(struct stream *stream) {
    const uint64_t last = load_acquire(&stream->submitted);
    return LIKELY(last & STREAM_LISTED) ? last : stream_list(stream, 0);
}

/* Records an event or a copy to the device, neither of which writes host memory. The caller has
 * already submitted the event or the copy. Earlier kernels remain recorded. `last` is what
 * stream_last returned. Returns the number; does nothing, and returns 0, if the stream's last
 * number is no longer `last`. */
static inline uint64_t stream_submitted_after(struct stream *stream, uint64_t last) {
    uint64_t next = last + STREAM_NEXT;
    if (last & STREAM_KERNEL && PROOF(kernels_are_done, last == load_acquire(&stream->completed)))
        next -= STREAM_KERNEL;
    return cas_acq_rel(&stream->submitted, &last, next) ? next : 0;
}

/* Records an event or a copy to the device, as stream_submitted_after does. */
static inline void stream_submitted(struct stream *stream) {
    if (!stream || !stream_submitted_after(stream, stream_last(stream)))
        stream_launched(stream);
}

/* Waits for all work that was submitted to a stream of the table. Returns HIP's answer. */
hipError_t stream_wait(struct stream *stream);

/* Reads a stream's flags, and calls HIP through `functions`. Returns false if HIP has no such
 * stream. */
bool stream_ask_flags(const struct hip_functions *functions, hipStream_t handle, unsigned *flags);

/* Returns whether a stream that the program destroys is of the kind that this library creates, and
 * of the device that the library knows. The program may have destroyed the library's stream by
 * calling HIP, and HIP may have returned that handle for a new stream. Asks HIP. */
bool stream_is_ours(const struct stream *stream);

/* Returns true if HIP records the stream's work in a graph, or does not answer. Asks HIP. */
bool stream_may_be_captured(hipStream_t handle);

/* Queries a stream that the caller has taken; returns HIP's answer. hipSuccess: all work and the
 * fence are done. hipErrorNotReady: work is pending, perhaps of other code; the stream then counts
 * as at work. Any other answer: HIP does not know the stream. Leaves the thread's last error as
 * stock would leave it. */
hipError_t stream_ask(struct stream *stream);

/* The advice that is printed when a wait returns an error of earlier work. */
extern struct advice stream_fault;

/* Records, before HIP destroys a stream, that the stream's work may continue. */
static inline void stream_leaves_work(const struct stream *stream) {
    if (!stream_is_idle(stream))
        stream_note_untracked(PROOF(left_work_is_of_the_device, stream_keeps_device(stream))
                                  ? load_relaxed(&stream->device)
                                  : ALL_DEVICES);
}

/* Inserts a handle that HIP has just returned. Returns NULL if there is no memory, or while a
 * thread holds the stream that had the handle before. */
struct stream *stream_insert(hipStream_t handle, int device);

/* Makes mgpuStreamCreate return this stream of the program to the calling thread from now on.
 * Returns false if there is no memory. */
bool stream_use_external(struct thread *thread, hipStream_t handle);
/* Ends the thread's use of its external stream. */
void stream_end_external(struct thread *thread);

/* Returns the entry of a stream that the runtime knows; NULL for any other handle. */
struct stream *stream_known(hipStream_t handle);

/* Returns whether the runtime knows the handle as a stream, and HIP has a stream with this handle.
 * The program may have destroyed this library's stream by calling HIP, and HIP may have returned
 * the stream's address for an event. */
bool stream_is_here(hipStream_t handle);

/* Returns the event that the program holds under this handle, or NULL (events.c). */
struct event *event_held(hipEvent_t handle);

/* Visits all entries of a device or of ALL_DEVICES, also null streams and untracked work. */
void stream_visit(int device, void (*visit)(struct stream *stream));

/* Waits until a device has completed all its work; returns at once if the library can tell that
 * nothing is pending. */
hipError_t stream_wait_for_device(int device);

#endif
