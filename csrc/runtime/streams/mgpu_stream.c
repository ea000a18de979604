/* mgpuStreamCreate, mgpuStreamDestroy, mgpuStreamSynchronize.
 *
 * A hit of mgpuStreamCreate is one compare-and-swap on the thread's own last stream; a hit of
 * mgpuStreamDestroy is one store. If other code in the process may call HIP (exclusive.h), the
 * library asks AMD's HIP before it hands out a stream. Other code may have used the stream, or have
 * reset the device: HIP reports whether the stream exists and is idle. */
#include "streams/mgpu_stream.h"
#include "driver/refusal.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"

static struct advice destroyed_twice = {
    .text = "stream %p was destroyed before; HIP may have given its handle to another stream"};
static struct advice used_after_destroy = {
    .text = "the program uses stream %p after mgpuStreamDestroy"};
static struct advice no_stream = {.text = "HIP knows no stream with the handle %p"};
static struct advice null_destroyed = {.text =
                                           "the null stream is HIP's own and is never destroyed"};

/* ---- mgpuStreamCreate ---- */

static __attribute__((noinline)) hipStream_t create_stream_slow(struct thread *thread, int device) {
    hipStream_t handle = NULL;
    REPORT("hipStreamCreate(&stream)", stream_acquire(thread, device, &handle), NULL);
    return handle;
}

hipStream_t impl_mgpuStreamCreate(void) {
    struct thread *thread = thread_get();
    const int device = hip_current_device();
    const struct stream *own = stream_lookup_thread(thread, device);
    return LIKELY(own) ? stream_handle(own) : create_stream_slow(thread, device);
}

/* ---- mgpuStreamDestroy ---- */

/* Returns true if the cache contains the stream, and no reset has ended the stream. The program
 * does not hold the stream. */
static bool stream_is_cached(const struct stream *stream) {
    return PROOF(refused_stream_is_ours, !stream_is_gone(stream)) &&
           device_kept(load_relaxed(&stream->device)) &&
           PROOF(refused_stream_is_ours, !stream_is_gone(stream));
}

static __attribute__((noinline)) void destroy_slow(struct thread *thread, hipStream_t handle) {
    static const char expression[] = "hipStreamDestroy(stream)";
    struct stream *own = thread->stream;
    if (stream_stays_cached(own, handle) && PROOF(kept_stream_is_ours, stream_is_ours(own)) &&
        stream_change(own, STREAM_LIVE, STREAM_IDLE))
        return;
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    struct advice *advice = NULL;
    if (runtime_leaves(stream))
        return;
    if (!stream || stream_is_gone(stream)) {
        advice = handle ? &destroyed_twice : &null_destroyed;
    } else if (DOUBT(destroyed_stream_is_external, load_relaxed(&stream->external_users))) {
        return; /* the caller's */
    } else if (stream_is_live(stream) &&
               DOUBT(destroyed_stream_is_not_ours, !stream_is_ours(stream))) {
        PROOF_STEP(replaced_stream_was_at_work, stream_leaves_work(stream));
        stream_invalidate(stream);
    } else if (stream_release(stream)) {
        return;
    } else if (stream_is_cached(stream)) { /* if the stream is not cached, another stream may have
                                            * its handle */
        REPORT(expression, refusal_of_stream(), &destroyed_twice, (void *)handle);
        return;
    }
    REPORT(expression, hip.StreamDestroy(handle), advice, (void *)handle);
}

/* No other thread can take a stream that the program holds, so a store suffices unless a thread
 * resets the device. */
void impl_mgpuStreamDestroy(hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *own = thread->stream;
    if (LIKELY(exclusive_hip() && stream_stays_cached(own, handle)))
        store_release(&own->state, STREAM_IDLE);
    else
        destroy_slow(thread, handle);
}

bool stream_report_dead(struct stream **stream, const char *expression) {
    if (stream_is_cached(*stream)) {
        REPORT(expression, refusal_of_stream(), &used_after_destroy,
               (void *)stream_handle(*stream));
        return false;
    }
    *stream = NULL; /* the device was reset: the handle now belongs to another stream */
    return true;
}

/* ---- mgpuStreamSynchronize ---- */

static bool is_postponed(struct stream *stream) {
    if (!options.sync_lazy || !lazy_put_off(stream))
        return false;
    if (runtime_counting())
        fetch_add_relaxed(&counts.postponed, 1);
    return true;
}

/* The library reports the use of a destroyed stream, and waits: stock's destroy would have waited
 * for the stream's work. */
static __attribute__((noinline)) void synchronize_slow(struct thread *thread, hipStream_t handle,
                                                       const char *expression) {
    struct stream *stream;
    const bool usable = stream_usable(thread, handle, &stream, expression);
    if (UNLIKELY(stream && (stream_is_known_idle(stream) || is_postponed(stream))))
        return;
    const hipError_t error = LIKELY(stream) ? stream_wait(stream) : hip.StreamSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error,
                       error == hipErrorContextIsDestroyed ? &no_stream : &stream_fault,
                       (void *)handle);
    else if (UNLIKELY(!usable))
        PROOF_STEP(
            wait_leaves_the_error,
            (void)refusal_of_stream()); /* in HIP 6 and older, the query has cleared the last error
                                         */
}

void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression) {
    struct stream *stream = stream_find(thread, handle); /* NULL for the null stream */
    if (UNLIKELY(!stream || !stream_is_live(stream) || load_acquire(&lazy_pending) ||
                 options.sync_lazy || stream_is_known_idle(stream)))
        synchronize_slow(thread, handle, expression);
    else
        REPORT(expression, stream_wait(stream), &stream_fault);
}

void impl_mgpuStreamSynchronize(hipStream_t stream) {
    stream_synchronize(thread_get(), stream, "hipStreamSynchronize(stream)");
}
