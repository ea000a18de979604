/* Manages the streams that the program does not hold: decides which thread gets a stream next, and
 * which streams HIP destroys. */
#include "streams/streams_pool.h"
#include "driver/device.h"
#include "streams/held.h"
#include "streams/lazy_sync.h"
#include "telemetry/counters.h"

enum { QUERIES_PER_CREATE = 2 };

/* ---- the queues ----
 *
 * The streams that the program does not hold, oldest first: one queue for idle streams, and one for
 * streams that were destroyed with pending work. Under tables_lock. A thread takes its last stream
 * without the lock, so a queue may contain a held stream. A thread that finds a held stream in a
 * queue removes it from the queue. If the stream's thread leaves it idle just then, the stream
 * stays the thread's last stream, and is in no queue. */

static struct queue idle, retired;
static size_t queued; /* in both */
size_t stream_pool_total;

static void drop_from_queue(struct stream *stream) {
    queued -= stream->queued.queue != NULL;
    queue_remove(&stream->queued);
}

/* Returns the state of the streams in a queue. */
static int state_in_queue(const struct queue *queue) {
    return queue == &idle ? STREAM_IDLE : STREAM_RETIRED;
}

/* Takes a stream that the program does not hold. From here on the caller owns the stream, and
 * queues it, hands it out, or calls HIP to destroy it. */
static bool take_stream(struct stream *stream, int from) {
    return stream_change(stream, from, STREAM_TAKEN);
}

/* Changes the state of the caller's stream. Returns false if the stream's device was reset: then
 * the stream is gone. A thread that invalidates streams first ends the device, and then reads the
 * state; this function changes the state first. So one of the two threads ends the stream. */
static bool move_taken(struct stream *stream, int to) {
    const int device = load_relaxed(&stream->device);
    (void)stream_change(stream, STREAM_TAKEN, to);
    fence_seq_cst();
    if (PROOF(taken_stream_outlives_no_reset, device_has_caches(device)))
        return true;
    stream_invalidate(stream);
    return false;
}

/* Puts a stream that the caller has taken into a queue, where other threads find the stream. */
static void add_to_queue(struct queue *queue, struct stream *stream) {
    if (stream->queued.queue != queue) {
        drop_from_queue(stream);
        queue_add(queue, &stream->queued, queue->newest);
        queued++;
    }
    const bool stays =
        PROOF(queued_stream_was_not_forgotten, move_taken(stream, state_in_queue(queue)));
    if (!stays)
        drop_from_queue(stream);
}

static void put_in_queue(struct queue *queue, struct stream *stream) {
    pthread_mutex_lock(&tables_lock);
    add_to_queue(queue, stream);
    pthread_mutex_unlock(&tables_lock);
}

/* Removes a device's newest or oldest stream from a queue; NULL if there is none. After a reset,
 * HIP may create a stream on another device under a handle that is still in this queue. */
static struct stream *take_from_queue(const struct queue *queue, int device, bool newest) {
    struct queued *next, *each = newest ? queue->newest : queue->oldest;
    for (; each; each = next) {
        struct stream *stream = QUEUE_ENTRY(each, struct stream, queued);
        next = newest ? each->older : each->newer;
        if (DOUBT(queued_stream_is_of_another_device, load_relaxed(&stream->device) != device))
            continue;
        drop_from_queue(stream);
        if (PROOF(queued_stream_is_taken_once, take_stream(stream, state_in_queue(queue))))
            return stream;
    }
    return NULL;
}

/* Takes the device's newest stream from the queue `idle`. */
static struct stream *take_idle(int device) {
    pthread_mutex_lock(&tables_lock);
    struct stream *found = take_from_queue(&idle, device, true);
    pthread_mutex_unlock(&tables_lock);
    return found;
}

bool stream_query_unheld(struct stream *stream, bool *asked) {
    const int state = stream_state(stream);
    if ((state != STREAM_IDLE && state != STREAM_RETIRED) ||
        !device_kept(load_relaxed(&stream->device)) || !take_stream(stream, state))
        return false;
    *asked = true;
    const bool done = stream_ask(stream) == hipSuccess;
    put_in_queue(state == STREAM_IDLE ? &idle : &retired, stream);
    return done;
}

/* ---- leaving ---- */

static void count_out(void) {
    CHECK(load_relaxed(&stream_pool_total) > 0);
    fetch_sub_relaxed(&stream_pool_total, 1);
}

void stream_invalidate(struct stream *stream) {
    int state = stream_state(stream);
    while (state != STREAM_GONE && state != STREAM_TAKEN && state != STREAM_EXTERNAL)
        if (PROOF(stream_is_forgotten_once,
                  cas_acq_rel_acquire(&stream->state, &state, STREAM_GONE))) {
            count_out();
            return;
        }
}

/* Removes a stream that the caller has taken. */
static void invalidate_taken(struct stream *stream) {
    (void)stream_change(stream, STREAM_TAKEN, STREAM_GONE);
    count_out();
}

/* Destroys a stream that the caller has taken. If freed blocks wait for the stream's work, the
 * library first waits for that work, because hipStreamDestroy does not always wait. Afterwards any
 * stream may use these blocks. While another thread asks HIP about the stream, puts the stream into
 * a queue again, and returns hipErrorNotReady. */
static hipError_t destroy_taken(struct stream *stream) {
    if (DOUBT(stream_is_in_question, stream_is_asked_about(stream))) {
        put_in_queue(&retired, stream);
        return hipErrorNotReady;
    }
    lazy_settle(NULL);
    stream_drop_mark(stream);
    if (stream_has_blocks(stream) && stream_wait(stream) == hipSuccess) {
        PROOF_STEP(nothing_waits_for_a_destroyed_stream, store_release(&stream->has_blocks, false));
    } else {
        PROOF_STEP(stream_goes_back_at_work, stream_leaves_work(stream));
    }
    caches_stream_ends(stream);
    const int device = load_relaxed(&stream->device);
    PROOF_STEP(stream_is_unknown_before_hip_has_it, invalidate_taken(stream));
    if (!device_has_caches(device))
        return hipSuccess; /* a reset has ended the stream: HIP no longer has it */
    return hip.StreamDestroy(stream_handle(stream));
}

/* Destroys streams of the device while the two queues contain more streams than the limit. Idle
 * streams are destroyed before streams with pending work, and older streams before newer streams. A
 * destroyed stream may have pending work, as with stock. */
static void enforce_limit(int device) {
    while (device_kept(device)) {
        struct stream *stream = NULL;
        pthread_mutex_lock(&tables_lock);
        if (DOUBT(streams_exceed_the_limit, queued > cache_limits.streams) &&
            !(stream = take_from_queue(&idle, device, false)))
            stream = take_from_queue(&retired, device, false);
        pthread_mutex_unlock(&tables_lock);
        const hipError_t error = stream ? destroy_taken(stream) : hipErrorNotReady;
        if (error == hipErrorNotReady)
            return;
        stats_eviction(CACHE_STREAMS);
        REPORT("hipStreamDestroy(stream)", error, NULL);
    }
}

/* ---- handing out ---- */

__attribute__((noinline)) bool stream_refuse(struct stream *stream, hipError_t error) {
    (void)stream_change(stream, STREAM_LIVE, STREAM_TAKEN); /* the thread's own stream */
    if (error == hipErrorNotReady) {
        put_in_queue(&retired, stream);
        return false;
    }
    stream_leaves_work(stream); /* other code has destroyed the stream */
    invalidate_taken(stream);
    return false;
}

/* Returns true if HIP still has the device's streams, so that HIP may be asked about them. */
static bool has_streams(int device) {
    return PROOF(reset_before_stream_reuse, device_kept(device)) && device_has_caches(device);
}

__attribute__((noinline)) bool stream_confirm_own(struct stream *stream, int device) {
    return PROOF(nobody_has_reached_own_stream, witness_confirms()) ||
           (has_streams(device) && stream_confirm(stream));
}

/* Queries the streams that were destroyed with pending work, oldest first, a few at a time. Streams
 * that still have pending work are queued behind the others. */
static struct stream *take_retired(int device) {
    const struct stream *first = NULL;
    const int most = PROOF_VALUE(destroyed_streams_are_asked_about, QUERIES_PER_CREATE, 0);
    for (int queries = 0; queries < most; queries++) {
        pthread_mutex_lock(&tables_lock);
        struct stream *stream = take_from_queue(&retired, device, false);
        pthread_mutex_unlock(&tables_lock);
        if (!stream)
            return NULL;
        const hipError_t error = stream == first ? hipErrorNotReady : stream_ask(stream);
        if (error == hipSuccess)
            return stream;
        (void)stream_refuse(stream, error);
        first = first ? first : stream;
    }
    return NULL;
}

/* Puts a stream that is no longer the thread's last stream into a queue, where other threads find
 * the stream. Does nothing for NULL, or if the stream's state is not IDLE. */
static void leave_to_others(struct stream *stream) {
    if (stream && take_stream(stream, STREAM_IDLE))
        put_in_queue(&idle, stream);
}

/* HIP has returned the handle of a stream that this library did not destroy: the program has
 * destroyed that stream by calling HIP. hipStreamDestroy waits for the stream's work in AMD's HIP
 * 5.2.3 to 7.2.4, but AMD does not guarantee this wait. NVIDIA's driver does not wait. HIP does not
 * order the new stream's work after the old stream's work, which may still use freed blocks and
 * pinned memory. */
static void end_past(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    if (LIKELY(!stream))
        return;
    PROOF_STEP(replaced_stream_was_at_work, stream_leaves_work(stream));
    stream_invalidate(stream);
    const uint64_t number = stream_begin_wait(stream);
    if (!stream_has_blocks(stream) || device_answered(stream_wait_for_device(stream->device)))
        stream_complete(stream, number);
}

hipError_t stream_acquire(struct thread *thread, int device, hipStream_t *handle) {
    struct stream *stream = NULL, *const before = thread->stream;
    call_tell(CALL_BYPASS);
    if (thread->external) {
        *handle = stream_handle(thread->external);
        return hipSuccess;
    }
    if (!cache_is_on(CACHE_STREAMS))
        return caches_on() || !cuda_present() ? hip.StreamCreate(handle)
                                              : cuda.stream_create(handle);
    lazy_note_stream();
    if (device_has_caches(device))
        stream = take_idle(device);
    /* The probe follows the take, as in stream_lookup_thread. */
    const bool untouched = PROOF(nobody_has_reached_idle_streams, sole_user_of_hip());
    if (!untouched && has_streams(device))
        while (stream && !stream_confirm(stream))
            stream = take_idle(device);
    if (!stream && device_has_caches(device)) /* a stream that was destroyed while its work was
                                               * pending; the work is done now */
        stream = take_retired(device);
    if (stream && PROOF(stream_was_not_forgotten, move_taken(stream, STREAM_LIVE))) {
        call_tell(CALL_HIT);
        *handle = stream_handle(stream);
    } else {
        const hipError_t error = RETRY(hip.StreamCreate(handle));
        register_exit();
        if (error != hipSuccess)
            return error;
        stats_miss(CACHE_STREAMS);
        PROOF_STEP(past_of_a_new_handle_ends, end_past(*handle));
        stream = device_has_caches(device) ? stream_insert(*handle, device) : NULL;
        if (!stream) /* only HIP knows the stream */
            return hipSuccess;
        device_watch(device);
        fetch_add_relaxed(&stream_pool_total, 1);
    }
    if (!thread_is_none(thread)) {
        store_relaxed(&thread->stream, stream);
        PROOF_STEP(last_stream_is_left_to_others, leave_to_others(before));
    }
    return hipSuccess;
}

bool stream_release(struct stream *stream) {
    const bool is_idle = stream_is_idle(stream) || lazy_has_put_off(stream);
    const bool is_held =
        PROOF(stream_is_released_once, stream_change(stream, STREAM_LIVE, STREAM_TAKEN));
    if (!is_held)
        return false;
    put_in_queue(PROOF(released_stream_is_idle, is_idle) ? &idle : &retired, stream);
    enforce_limit(stream->device);
    return true;
}

bool stream_all_quiet(void) {
    bool asked;
    for (struct stream *stream = stream_first_listed(); stream;
         stream = stream_next_listed(stream)) {
        const int state = stream_state(stream);
        const bool counts = state == STREAM_LIVE || state == STREAM_TAKEN || !stream_handle(stream);
        if (counts && !stream_is_idle(stream))
            return false; /* HIP may not know the stream any longer: the program may have destroyed
                           * it
                           */
        if (state == STREAM_RETIRED && !stream_query_unheld(stream, &asked))
            return false;
    }
    return true;
}

bool stream_query_all(int device) {
    bool asked = false;
    for (struct stream *stream = stream_first_listed(); stream; stream = stream_next_listed(stream))
        if (load_relaxed(&stream->device) == device && stream_is_at_work(stream) &&
            !stream_query_unheld(stream, &asked) && !stream_query_held(stream, &asked))
            break;
    return asked;
}

void stream_trim_at_exit(void) {
    bool has_destroyed = false;
    stream_drop_marks(ALL_DEVICES);
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        const int state = stream_state(stream);
        if ((state != STREAM_IDLE && state != STREAM_RETIRED) ||
            !device_kept(load_relaxed(&stream->device)) || !take_stream(stream, state))
            continue;
        if (stream_ask(stream) == hipSuccess)
            has_destroyed |= destroy_taken(stream) == hipSuccess;
        else
            (void)move_taken(stream, state);
    }
    if (DOUBT(hip_still_holds_kernels, has_destroyed))
        rocr_catch_up();
}

static int trim_streams(int device) {
    int count = 0;
    stream_drop_marks(device);
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (of_device(device, load_relaxed(&stream->device)) && take_stream(stream, STREAM_IDLE) &&
            stream_confirm(stream) && destroy_taken(stream) == hipSuccess)
            count++;
    return count;
}

static void invalidate(struct stream *stream) {
    stream_invalidate(stream);
    stream_complete(stream, stream_begin_wait(stream)); /* HIP has ended the work, too */
    store_release(&stream->has_blocks, false);
}

static void invalidate_streams(int device) {
    stream_visit(PROOF_VALUE(reset_ends_its_own_streams, device, ALL_DEVICES), invalidate);
}

static void release_of_thread(struct thread *thread) {
    struct stream *stream = thread->stream;
    stream_end_external(thread);
    leave_to_others(stream);
}

/* ---- for the manager ---- */

static bool describe_stream(const void *entry, struct cached *out) {
    const struct stream *stream = entry;
    const int state = stream_state(stream);
    *out = (struct cached){stream_handle(stream), 0, 0, stream->device, state == STREAM_LIVE};
    return state != STREAM_GONE && state != STREAM_EXTERNAL;
}

static hipError_t evict_stream(void *handle) {
    struct stream *stream = stream_known(handle);
    if (!stream)
        return hipErrorNotFound;
    if (!device_kept(load_relaxed(&stream->device)) || !take_stream(stream, STREAM_IDLE))
        return hipErrorNotReady;
    const hipError_t error = destroy_taken(stream);
    if (error != hipErrorNotReady)
        stats_eviction(CACHE_STREAMS);
    return error;
}

const struct cache stream_cache = {.trim = trim_streams,
                                   .invalidate = invalidate_streams,
                                   .thread_ends = release_of_thread,
                                   .describe = describe_stream,
                                   .map = &stream_map,
                                   .evict = evict_stream};
