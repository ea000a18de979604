/* mgpuStreamCreate, mgpuStreamDestroy, mgpuStreamSynchronize.
 *
 * A hit of create is one compare-and-swap on the thread's own last stream, a hit of destroy a
 * store. Unless the process is the runtime's alone (exclusive.h), HIP is asked whether the stream
 * is idle still, and still there, before it is handed out: others may have used it, or reset the
 * device. */
#include "calls/stream.h"
#include "base/counters.h"
#include "base/observe.h"
#include "base/options.h"
#include "base/state.h"
#include "cache/blocks_pool.h"
#include "cache/caches.h"
#include "cache/streams_pool.h"
#include "cache/watch.h"
#include "hip/device.h"
#include "hip/exclusive.h"
#include "hip/hip.h"
#include "hip/refusal.h"
#include "hip/report.h"

static struct advice destroyed_twice = {
    .text = "stream %p was destroyed before; its handle may already serve somebody else"};
static struct advice used_after_destroy = {.text = "stream %p is used after its mgpuStreamDestroy"};
static struct advice null_destroyed = {.text =
                                           "the null stream is HIP's own and is never destroyed"};

/* ---- mgpuStreamCreate ---- */

/* The one before, perhaps another device's, is for whoever finds it. */
static void make_last(struct thread *thread, struct stream *stream) {
    struct stream *before = thread->stream;
    if (thread_is_none(thread))
        return;
    store_relaxed(&thread->stream, stream);
    stream_pool_leave(before);
}

/* HIP hands out a handle again that it did not get back from here: the program has destroyed that
 * stream by HIP itself. AMD's 5.2.3 to 7.2.4 wait for its work then, but promise nothing, and
 * NVIDIA's driver does not wait. What was freed on it, or copied through pinned memory, is not in
 * the order of the stream that has the handle now. */
static void end_past(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    if (stream)
        stream_pool_forget(stream);
    if (LIKELY(!stream || !load_acquire(&stream->awaited)))
        return;
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = stream_wait_for_device(stream->device);
    if (error == hipSuccess)
        stream_pass(stream, mark);
    else
        device_forget_error(error);
}

static hipStream_t create_new(struct thread *thread, int device) {
    hipStream_t handle = NULL;
    stats_miss(CACHE_STREAMS);
    const hipError_t error = RETRY(hip.StreamCreate(&handle));
    register_exit();
    if (error != hipSuccess) {
        report_failure("hipStreamCreate(&stream)", error, NULL);
        return NULL;
    }
    end_past(handle);
    struct stream *stream =
        device < STREAM_DEVICES ? stream_enter(handle, device, STREAM_LIVE) : NULL;
    if (!stream)
        return handle;
    block_stream_enters(stream);
    make_last(thread, stream);
    observe(OBSERVED_STREAM_CREATED, handle, 0, device);
    device_watch(device);
    stream_pool_add();
    return handle;
}

/* A program that holds several streams at once wants them to run at once: what was put off on one
 * would have to be waited for before the other's work, and with it what came since. */
static void note_several(void) {
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (stream_state(stream) == STREAM_LIVE || stream_state(stream) == STREAM_RETIRED)
            lazy_end();
    lazy_settle(NULL);
}

static __attribute__((noinline)) hipStream_t create_stream_slow(struct thread *thread, int device) {
    if (thread->chosen) {
        stats_bypass(CACHE_STREAMS);
        return stream_handle(thread->chosen);
    }
    if (!cache_is_on(CACHE_STREAMS)) {
        hipStream_t handle = NULL;
        stats_bypass(CACHE_STREAMS);
        REPORT("hipStreamCreate(&stream)", hip.StreamCreate(&handle), NULL);
        return handle;
    }
    if (UNLIKELY(options.sync_lazy))
        note_several();
    struct stream *stream = device < STREAM_DEVICES ? stream_pool_take(device) : NULL;
    if (!stream)
        return create_new(thread, device);
    make_last(thread, stream);
    return stream_handle(stream);
}

static inline bool take_last(struct stream *stream) {
    if (LIKELY(exclusive_hip()))
        return stream_change(stream, STREAM_FREE, STREAM_LIVE);
    return watch_ask(stream->device) && stream_change(stream, STREAM_FREE, STREAM_LIVE) &&
           stream_pool_confirm(stream);
}

hipStream_t impl_mgpuStreamCreate(void) {
    struct thread *thread = thread_get();
    struct stream *stream = thread->stream;
    const int device = hip_current_device();
    if (LIKELY(stream && stream->device == device && !thread->chosen && take_last(stream)))
        return stream_handle(stream);
    return create_stream_slow(thread, device);
}

/* ---- mgpuStreamDestroy ---- */

/* Whether a stream that the program destroys is of the kind that the runtime makes: it may have
 * destroyed ours by HIP itself, and have got another one at its address. */
static __attribute__((noinline)) bool is_ours(hipStream_t handle) {
    unsigned flags = 0;
    return stream_ask_flags(handle, &flags) && flags == 0;
}

static __attribute__((noinline)) void destroy_as_stock(struct stream *stream) {
    stream_pool_forget(stream);
    REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(stream_handle(stream)), NULL);
}

static __attribute__((noinline)) void destroy_stream_slow(struct thread *thread,
                                                          hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    const int state = stream ? stream_state(stream) : STREAM_GONE;
    if (runtime_leaves(stream))
        return;
    if (state == STREAM_GONE) {
        REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle),
               handle ? &destroyed_twice : &null_destroyed, (void *)handle);
        return;
    }
    if (load_relaxed(&stream->borrowers))
        return; /* it is lent: the caller's */
    if (state == STREAM_LIVE && !exclusive_hip() && !is_ours(handle)) {
        destroy_as_stock(stream);
        return;
    }
    const bool is_idle = stream_is_idle(stream) || lazy_has_put_off(stream);
    if (stream_change(stream, STREAM_LIVE, STREAM_LEAVING))
        stream_pool_put(stream, is_idle);
    else if (!stream_is_kept(stream)) /* another one's by now */
        REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle), NULL);
    else
        REPORT("hipStreamDestroy(stream)", refusal_of_stream(), &destroyed_twice, (void *)handle);
}

/* The thread's last stream, idle, and no more of them than may lie idle: it stays the thread's. */
static inline bool is_simple(const struct stream *stream, hipStream_t handle) {
    return stream && stream_handle(stream) == handle && stream_is_idle(stream) &&
           !load_relaxed(&stream->borrowers) && stream_pool_has_room() &&
           stream_state(stream) == STREAM_LIVE;
}

static __attribute__((noinline)) void destroy_after_asking(struct thread *thread,
                                                           hipStream_t handle) {
    struct stream *stream = thread->stream;
    if (!is_simple(stream, handle) || !is_ours(handle) ||
        !stream_change(stream, STREAM_LIVE, STREAM_FREE))
        destroy_stream_slow(thread, handle);
}

/* A stream that the program holds is nobody else's to take: a store does, where nobody resets the
 * device. */
void impl_mgpuStreamDestroy(hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *stream = thread->stream;
    if (LIKELY(exclusive_hip() && is_simple(stream, handle)))
        store_release(&stream->state, STREAM_FREE);
    else
        destroy_after_asking(thread, handle);
}

bool stream_is_here(hipStream_t handle) {
    unsigned flags;
    return stream_known(handle) && (exclusive_hip() || stream_ask_flags(handle, &flags));
}

bool stream_report_dead(struct stream **stream, const char *expression) {
    if (stream_is_kept(*stream)) {
        REPORT(expression, refusal_of_stream(), &used_after_destroy,
               (void *)stream_handle(*stream));
        return false;
    }
    *stream = NULL; /* the device was reset: another one's by now */
    return true;
}

/* ---- mgpuStreamSynchronize ---- */

void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression) {
    struct stream *stream;
    /* One that was given back is reported and waited for all the same: stock's destroy would have
     * waited for its work. */
    const bool usable = stream_usable(thread, handle, &stream, expression);
    if (UNLIKELY(stream && stream_is_known_idle(stream)))
        return;
    if (UNLIKELY(options.sync_lazy && stream && lazy_put_off(stream)))
        return;
    const hipError_t error = LIKELY(stream) ? stream_wait(stream) : hip.StreamSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, &stream_fault);
    else if (UNLIKELY(!usable))
        (void)refusal_of_stream(); /* up to HIP 6 the wait has cleared the last error */
}

void impl_mgpuStreamSynchronize(hipStream_t stream) {
    stream_synchronize(thread_get(), stream, "hipStreamSynchronize(stream)");
}
