#include "streams/held.h"
#include "driver/device.h"
#include "streams/streams.h"

/* ---- may HIP be asked? ---- */

/* Returns true if the handle still belongs to a stream of this library, which runs its work at
 * once. Only other code captures streams of this library. */
static bool can_be_asked(const struct stream *stream) {
    return exclusive_hip() ||
           (PROOF(asked_stream_is_ours, stream_is_ours(stream)) &&
            (PROOF(nobody_captures_our_streams, sole_user_so_far()) ||
             PROOF(asked_stream_is_not_captured, !stream_may_be_captured(stream_handle(stream)))));
}

bool stream_is_asked_about(const struct stream *stream) {
    fence_seq_cst();
    return load_seq_cst(&stream->asked_about);
}

/* Only one thread at a time asks about a stream. HIP destroys no stream while a thread asks about
 * it: a thread that destroys a stream first takes it, and then looks at `asked_about`. */
static bool begin_question(struct stream *stream) {
    if (exchange_seq_cst(&stream->asked_about, true))
        return false;
    if (PROOF(asked_stream_is_held, load_seq_cst(&stream->state) == STREAM_LIVE))
        return true;
    store_release(&stream->asked_about, false);
    return false;
}

/* ---- the library's event on a stream ----
 *
 * `mark` is an event, which is created at its first use. If `marked` is not 0, the event follows
 * all work up to this number. Only the thread that has set `asked_about` may change these members.
 */

static void record_mark(struct stream *stream) {
    hipEvent_t mark = stream->mark;
    if (!mark && !device_answered(hip.EventCreateWithFlags(&mark, hipEventDisableTiming)))
        return;
    stream->mark = mark;
    const uint64_t number = stream_begin_wait(stream);
    if (device_answered(hip.EventRecord(stream->mark, stream_handle(stream))))
        stream->marked = number;
}

/* Returns true if the event is complete. The stream has then done all work before the event. If
 * the program has submitted more work since, records the event again, because blocks that were
 * freed since wait for that work. */
static bool look_at_mark(struct stream *stream) {
    const bool is_complete = PROOF(mark_is_complete, device_answered(hip.EventQuery(stream->mark)));
    if (!is_complete)
        return false;
    stream_complete(stream, stream->marked);
    stream->marked = 0;
    if (!stream_is_idle(stream))
        record_mark(stream);
    return true;
}

static bool ask(struct stream *stream) {
    if (stream->marked)
        return look_at_mark(stream);
    const hipError_t error = stream_ask(stream);
    if (error == hipErrorNotReady)
        record_mark(stream);
    return error == hipSuccess;
}

bool stream_query_held(struct stream *stream, bool *asked) {
    bool learned = false;
    if (stream_state(stream) != STREAM_LIVE || load_relaxed(&stream->external_users))
        return false;
    /* HIP keeps a question waiting while another thread waits for the stream. Another thread may
     * also capture or destroy the stream by calling HIP. */
    if (!PROOF(no_other_thread_calls, thread_is_alone()) || !begin_question(stream))
        return false;
    *asked = true;
    if (can_be_asked(stream))
        learned = ask(stream);
    store_release(&stream->asked_about, false);
    return learned;
}

void stream_drop_mark(struct stream *stream) {
    const hipEvent_t mark = stream->mark;
    stream->mark = NULL;
    stream->marked = 0;
    if (mark)
        REPORT("hipEventDestroy(event)", hip.EventDestroy(mark), NULL);
}

void stream_drop_marks(int device) {
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        if (!of_device(device, load_relaxed(&stream->device)) || !stream->mark ||
            !begin_question(stream))
            continue;
        stream_drop_mark(stream);
        store_release(&stream->asked_about, false);
    }
}
