/* mgpuStreamCreate, mgpuStreamDestroy, mgpuStreamSynchronize, mgpuStreamWaitEvent.
 *
 * A hit of create is one compare-and-swap on the thread's own last stream, a hit of destroy the
 * same. Unless the process is the runtime's alone (exclusive.h), HIP is asked whether the stream is
 * idle still, and still there, before it is handed out: others may have used it, or reset the
 * device. */
#include "stream.h"
#include "block.h"
#include "cuda.h"
#include "device.h"
#include "event.h"
#include "exclusive.h"
#include "lazy.h"
#include "manage.h"
#include "memory.h"
#include "mgpu_rt.h"
#include "observe.h"
#include "refusal.h"
#include "registry.h"
#include "staging.h"

#include <stdlib.h>

enum { DEVICES = 64, QUERIES_PER_CREATE = 2 };

struct handle_map stream_map;
uintptr_t stream_others;
pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;

static struct advice destroyed_twice = {
    .text = "stream %p was destroyed before; its handle may already serve somebody else"};
static struct advice used_after_destroy = {.text = "stream %p is used after its mgpuStreamDestroy"};
static struct advice null_destroyed = {.text =
                                           "the null stream is HIP's own and is never destroyed"};
struct advice stream_fault = {
    .text = "an error of earlier work shows here: a kernel on this device has failed, or a copy "
            "before it"};

static bool change(struct stream *stream, int from, int to) {
    return __atomic_compare_exchange_n(&stream->state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static hipStream_t handle_of(const struct stream *stream) {
    return (hipStream_t)stream->handle.key;
}

static bool is_on(const struct stream *stream, int device) {
    return __atomic_load_n(&stream->device, __ATOMIC_RELAXED) == device;
}

/* ---- asking HIP ---- */

hipError_t stream_ask(struct stream *stream) {
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = hip.StreamQuery(handle_of(stream));
    if (error == hipSuccess)
        stream_pass(stream, mark);
    else
        device_forget_error(error);
    return error;
}

/* ---- the queues ----
 *
 * The streams that the program does not hold, by device: those last known to be idle, and those
 * destroyed with work pending, oldest first. Under stream_lock. A thread takes its own last stream
 * without the lock, so a queued stream may be held again: who finds it so drops it.
 */

struct stream_queue {
    struct stream *oldest, *newest;
};
static struct stream_queue idle[DEVICES], retired[DEVICES];
static size_t queued; /* in all queues */
static size_t total;  /* streams that HIP holds for the runtime */

static void append(struct stream_queue *queue, struct stream *stream) {
    stream->queue = queue;
    stream->older = queue->newest;
    stream->newer = NULL;
    *(queue->newest ? &queue->newest->newer : &queue->oldest) = stream;
    queue->newest = stream;
    queued++;
}

static void drop(struct stream *stream) {
    struct stream_queue *queue = stream->queue;
    *(stream->older ? &stream->older->newer : &queue->oldest) = stream->newer;
    *(stream->newer ? &stream->newer->older : &queue->newest) = stream->older;
    stream->queue = NULL;
    queued--;
}

/* The state of the streams that a queue is for. */
static int state_in(const struct stream_queue *queue) {
    return queue >= idle && queue < idle + DEVICES ? STREAM_FREE : STREAM_RETIRED;
}

/* Takes a stream out, the newest or the oldest; NULL if the queue is empty. */
static struct stream *take(struct stream_queue *queue, bool newest) {
    while (queue->oldest) {
        struct stream *stream = newest ? queue->newest : queue->oldest;
        drop(stream);
        if (change(stream, state_in(queue), STREAM_LIVE))
            return stream;
    }
    return NULL;
}

static struct stream *take_queued(struct stream_queue *queue, bool newest) {
    pthread_mutex_lock(&stream_lock);
    struct stream *stream = take(queue, newest);
    pthread_mutex_unlock(&stream_lock);
    return stream;
}

/* The last stream of a thread that does not hold it just now. */
static struct stream *take_from_threads(int device) {
    struct stream *found = NULL;
    pthread_mutex_lock(&registry_lock);
    for (struct thread *thread = thread_list; thread && !found; thread = thread->next) {
        struct stream *stream = __atomic_load_n(&thread->stream, __ATOMIC_RELAXED);
        if (stream && is_on(stream, device) && change(stream, STREAM_FREE, STREAM_LIVE))
            found = stream;
    }
    pthread_mutex_unlock(&registry_lock);
    return found;
}

/* Puts a stream that the caller has taken into a queue, where the others find it. */
static void put(struct stream_queue *queue, struct stream *stream) {
    pthread_mutex_lock(&stream_lock);
    if (stream->queue != queue) {
        if (stream->queue)
            drop(stream);
        append(queue, stream);
    }
    __atomic_store_n(&stream->state, state_in(queue), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&stream_lock);
}

bool stream_query_unheld(struct stream *stream) {
    const int state = stream_state(stream);
    if ((state != STREAM_FREE && state != STREAM_RETIRED) || !change(stream, state, STREAM_LIVE))
        return false;
    if (!device_kept(stream->device))
        return false;
    const bool done = stream_ask(stream) == hipSuccess;
    put(state == STREAM_FREE ? &idle[stream->device] : &retired[stream->device], stream);
    return done;
}

/* ---- entering and leaving ---- */

/* The entry of a handle that HIP has just returned, or that the program lends. */
static struct stream *enter(hipStream_t handle, int device, int state) {
    pthread_mutex_lock(&registry_lock);
    struct stream *stream = handle_find(&stream_map, handle);
    if (!stream && (stream = aligned_alloc(64, sizeof *stream))) {
        *stream = (struct stream){.handle.key = handle, .device = device, .state = STREAM_GONE};
        handle_add(&stream_map, &stream->handle);
    }
    if (stream) {
        if (stream->device != device)
            block_stream_moves(stream, device);
        __atomic_store_n(&stream->device, device, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->busy, STREAM_IDLE, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->state, state, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&registry_lock);
    return stream;
}

/* HIP hands out a handle again that it did not get back from here: the program has destroyed that
 * stream by HIP itself. AMD's 5.2.3 to 7.2.4 wait for its work then, but promise nothing, and
 * NVIDIA's driver does not wait. What was freed on it, or copied through pinned memory, is not in
 * the order of the stream that has the handle now. */
static void end_past(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    if (LIKELY(!stream || !__atomic_load_n(&stream->awaited, __ATOMIC_ACQUIRE)))
        return;
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = memory_wait_for_device(stream->device);
    if (error == hipSuccess)
        stream_pass(stream, mark);
    else
        device_forget_error(error);
}

static void use(struct thread *thread, struct stream *stream) {
    __atomic_store_n(&thread->stream, stream, __ATOMIC_RELAXED);
}

/* Gives HIP back a stream that the caller has taken. Blocks that were freed on it are anybody's
 * afterwards, so their work has to be done: HIP's destroy does not wait on every device. */
static hipError_t finish(struct stream *stream) {
    lazy_settle(NULL);
    const uint64_t mark = stream_set_mark(stream);
    if (mark && hip.StreamSynchronize(handle_of(stream)) == hipSuccess) {
        stream_pass(stream, mark);
        __atomic_store_n(&stream->awaited, false, __ATOMIC_RELEASE);
    }
    staging_leave(stream);
    __atomic_fetch_sub(&total, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->state, STREAM_GONE, __ATOMIC_RELEASE);
    const hipError_t error = hip.StreamDestroy(handle_of(stream));
    observe(OBSERVED_STREAM_DESTROYED, stream->handle.key, 0, stream->device);
    return error;
}

/* Takes the stream that is the first to leave: idle before busy, the oldest first. Under
 * stream_lock. */
static struct stream *take_oldest(int device) {
    struct stream *stream = take(&idle[device], false);
    return stream ? stream : take(&retired[device], false);
}

/* As long as there are more than the limit that the program does not hold, HIP gets one back, also
 * one at work: stock gives back each. */
static void trim(int device) {
    while (device_kept(device)) {
        pthread_mutex_lock(&stream_lock);
        struct stream *stream = queued > cache_limits.streams ? take_oldest(device) : NULL;
        pthread_mutex_unlock(&stream_lock);
        if (!stream)
            return;
        stats_eviction(CACHE_STREAMS);
        REPORT("hipStreamDestroy(stream)", finish(stream), NULL);
    }
}

/* More streams exist than may lie idle, so those that threads keep for themselves count too: from
 * now on each destroy puts its stream into a queue (is_simple). */
static void queue_those_of_threads(void) {
    pthread_mutex_lock(&registry_lock);
    for (struct thread *thread = thread_list; thread; thread = thread->next) {
        struct stream *stream = __atomic_load_n(&thread->stream, __ATOMIC_RELAXED);
        if (stream && change(stream, STREAM_FREE, STREAM_LIVE))
            put(&idle[stream->device], stream);
    }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- mgpuStreamCreate ---- */

static hipStream_t create_new(struct thread *thread, int device) {
    hipStream_t handle = NULL;
    stats_miss(CACHE_STREAMS);
    const hipError_t error = RETRY(hip.StreamCreate(&handle));
    runtime_register_exit();
    if (error != hipSuccess) {
        report_failure("hipStreamCreate(&stream)", error, NULL);
        return NULL;
    }
    end_past(handle);
    struct stream *stream = device < DEVICES ? enter(handle, device, STREAM_LIVE) : NULL;
    if (!stream)
        return handle;
    use(thread, stream);
    observe(OBSERVED_STREAM_CREATED, handle, 0, device);
    device_watch(device);
    if (__atomic_add_fetch(&total, 1, __ATOMIC_RELAXED) == cache_limits.streams + 1)
        queue_those_of_threads();
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

/* HIP does not know a stream that it never got back from here: somebody has reset the device. What
 * was cached is gone with it. */
static void note_reset(struct stream *stream) {
    __atomic_store_n(&stream->state, STREAM_GONE, __ATOMIC_RELEASE);
    runtime_forget_all();
}

/* Whether a stream that was just taken, and that the runtime knows to be idle, is so by HIP's word:
 * others may have submitted to it. If not it is put back. NVIDIA's driver is not asked: it
 * takes 1.6 of a launch's 9 µs for the answer, and at stake is only that work which others leave on
 * a stream that they destroy without waiting comes before the next owner's. */
static bool confirm(struct stream *stream) {
    if (exclusive_hip() || cuda_present())
        return true;
    if (UNLIKELY(!device_kept(stream->device)))
        return false;
    const hipError_t error = stream_ask(stream);
    if (LIKELY(error == hipSuccess))
        return true;
    if (error == hipErrorNotReady)
        put(&retired[stream->device], stream);
    else
        note_reset(stream);
    return false;
}

/* Looks at the streams that were destroyed with work pending, oldest first, a few at a time: the
 * ones that are still at work go behind the others. */
static struct stream *take_retired(int device) {
    const struct stream *first = NULL;
    for (int queries = 0; queries < QUERIES_PER_CREATE; queries++) {
        struct stream *stream = take_queued(&retired[device], false);
        if (!stream || !device_kept(device))
            return NULL;
        const hipError_t error = stream == first ? hipErrorNotReady : stream_ask(stream);
        if (error == hipSuccess) {
            __atomic_store_n(&stream->busy, STREAM_IDLE, __ATOMIC_RELEASE);
            return stream;
        }
        if (error != hipErrorNotReady) {
            note_reset(stream);
            return NULL;
        }
        put(&retired[device], stream);
        first = first ? first : stream;
    }
    return NULL;
}

static struct stream *take_any(int device) {
    struct stream *stream;
    while ((stream = take_queued(&idle[device], true)))
        if (confirm(stream))
            return stream;
    stream = take_from_threads(device);
    if (stream && confirm(stream))
        return stream;
    return take_retired(device);
}

static __attribute__((noinline)) hipStream_t create_slow(struct thread *thread, int device) {
    if (thread->chosen) {
        stats_bypass(CACHE_STREAMS);
        return handle_of(thread->chosen);
    }
    if (!options.cache_on) {
        hipStream_t handle = NULL;
        stats_bypass(CACHE_STREAMS);
        REPORT("hipStreamCreate(&stream)", hip.StreamCreate(&handle), NULL);
        return handle;
    }
    if (UNLIKELY(options.sync_lazy))
        note_several();
    struct stream *stream = device < DEVICES ? take_any(device) : NULL;
    if (!stream)
        return create_new(thread, device);
    use(thread, stream);
    return handle_of(stream);
}

hipStream_t impl_mgpuStreamCreate(void) {
    struct thread *thread = thread_get();
    struct stream *stream = thread->stream;
    const int device = hip_current_device();
    if (LIKELY(stream && stream->device == device && !thread->chosen &&
               change(stream, STREAM_FREE, STREAM_LIVE) && confirm(stream)))
        return handle_of(stream);
    return create_slow(thread, device);
}

/* ---- mgpuStreamDestroy ---- */

/* Not the thread's last one, at work, or one of many: it goes where the others find it. */
static __attribute__((noinline)) void put_by(struct stream *stream, bool is_idle) {
    put(is_idle ? &idle[stream->device] : &retired[stream->device], stream);
    trim(stream->device);
}

/* Whether a stream that the program destroys is of the kind that the runtime makes: it may have
 * destroyed ours by HIP itself, and have got another one at its address. */
static __attribute__((noinline)) bool is_ours(hipStream_t handle) {
    unsigned flags = 0;
    return hip.StreamGetFlags(handle, &flags) == hipSuccess && flags == 0;
}

static __attribute__((noinline)) void destroy_as_stock(struct stream *stream) {
    __atomic_fetch_sub(&total, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->state, STREAM_GONE, __ATOMIC_RELEASE);
    REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle_of(stream)), NULL);
}

static __attribute__((noinline)) void destroy_slow(struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    const int state = stream ? stream_state(stream) : STREAM_GONE;
    if (runtime_leaves(stream))
        return;
    if (state == STREAM_GONE) {
        REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle),
               handle ? &destroyed_twice : &null_destroyed, (void *)handle);
        return;
    }
    if (__atomic_load_n(&stream->borrowers, __ATOMIC_RELAXED))
        return; /* it is lent: the caller's */
    if (state == STREAM_LIVE && !exclusive_hip() && !is_ours(handle)) {
        destroy_as_stock(stream);
        return;
    }
    const uintptr_t busy = __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE);
    if (change(stream, STREAM_LIVE, STREAM_LEAVING))
        put_by(stream, busy == STREAM_IDLE || busy == STREAM_PUT_OFF);
    else if (!device_kept(stream->device)) /* another one's by now */
        REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle), NULL);
    else
        REPORT("hipStreamDestroy(stream)", refusal_of_stream(), &destroyed_twice, (void *)handle);
}

/* The thread's last stream, idle, and no more of them than may lie idle: it stays the thread's. */
static inline bool is_simple(const struct stream *stream, hipStream_t handle) {
    return stream && handle_of(stream) == handle &&
           __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE) == STREAM_IDLE &&
           !__atomic_load_n(&stream->borrowers, __ATOMIC_RELAXED) &&
           __atomic_load_n(&total, __ATOMIC_RELAXED) <= cache_limits.streams &&
           (exclusive_hip() || (stream_state(stream) == STREAM_LIVE && is_ours(handle)));
}

void impl_mgpuStreamDestroy(hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *stream = thread->stream;
    if (UNLIKELY(!is_simple(stream, handle) || !change(stream, STREAM_LIVE, STREAM_FREE)))
        destroy_slow(thread, handle);
}

bool stream_report_dead(struct stream **stream, const char *expression) {
    if (device_kept((*stream)->device)) {
        REPORT(expression, refusal_of_stream(), &used_after_destroy, (void *)handle_of(*stream));
        return false;
    }
    *stream = NULL; /* the device was reset: another one's by now */
    return true;
}

/* ---- waiting ---- */

/* The stream is idle afterwards unless another thread has submitted to it or has begun to
 * synchronise it meanwhile: then its busy is not this thread's any more. */
hipError_t stream_wait(struct thread *thread, struct stream *stream) {
    uintptr_t token = (uintptr_t)thread;
    const uint64_t mark = stream_set_mark(stream);
    __atomic_store_n(&stream->busy, token, __ATOMIC_RELEASE);
    const hipError_t error = hip.StreamSynchronize(handle_of(stream));
    if (UNLIKELY(error != hipSuccess)) {
        stream_launched(stream);
        return error;
    }
    stream_pass(stream, mark);
    __atomic_compare_exchange_n(&stream->busy, &token, STREAM_IDLE, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    return hipSuccess;
}

/* Nothing was submitted since the last wait, and nobody else could have: HIP need not be asked. */
static bool is_known_idle(const struct stream *stream) {
    return exclusive_hip() && __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE) == STREAM_IDLE &&
           stream_state(stream) == STREAM_LIVE;
}

void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression) {
    struct stream *stream;
    /* One that was given back is reported and waited for all the same: stock's destroy would have
     * waited for its work. */
    const bool usable = stream_usable(thread, handle, &stream, expression);
    if (UNLIKELY(stream && is_known_idle(stream)))
        return;
    if (UNLIKELY(options.sync_lazy && stream && lazy_put_off(stream)))
        return;
    const hipError_t error =
        LIKELY(stream) ? stream_wait(thread, stream) : hip.StreamSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, &stream_fault);
    else if (UNLIKELY(!usable))
        (void)refusal_of_stream(); /* up to HIP 6 the wait has cleared the last error */
}

void impl_mgpuStreamSynchronize(hipStream_t stream) {
    stream_synchronize(thread_get(), stream, "hipStreamSynchronize(stream)");
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression) ||
        !event_usable(event, expression) || !event_recorded(event))
        return;
    const hipError_t error = hip.StreamWaitEvent(handle, event, 0);
    if (UNLIKELY(error != hipSuccess && !event_is_new(event, error)))
        report_failure(expression, error, NULL);
    stream_launched(stream); /* it now depends on kernels, perhaps */
}

/* ---- all of them ---- */

bool stream_any_busy(void) {
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (stream_state(stream) != STREAM_GONE && __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

bool stream_all_quiet(void) {
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        const int state = stream_state(stream);
        if (state == STREAM_LIVE && __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE))
            return false; /* HIP may not even know it any more: the program may have destroyed it */
        if (state == STREAM_RETIRED && !stream_query_unheld(stream))
            return false;
    }
    return __atomic_load_n(&stream_others, __ATOMIC_ACQUIRE) == OTHERS_IDLE;
}

int stream_give_back_all(void) {
    int count = 0;
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (change(stream, STREAM_FREE, STREAM_LIVE) && confirm(stream) &&
            finish(stream) == hipSuccess)
            count++;
    return count;
}

void stream_forget_all(void) {
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        if (stream_state(stream) != STREAM_BORROWED)
            __atomic_store_n(&stream->state, STREAM_GONE, __ATOMIC_RELEASE);
        stream_pass(stream, stream_next_mark(stream)); /* its work is gone, too */
    }
    __atomic_store_n(&total, 0, __ATOMIC_RELAXED);
}

/* ---- mgpu_rt_use_stream ---- */

static void unchoose(struct thread *thread) {
    struct stream *stream = thread->chosen;
    thread->chosen = NULL;
    if (!stream)
        return;
    pthread_mutex_lock(&stream_lock);
    __atomic_store_n(&stream->borrowers, stream->borrowers - 1, __ATOMIC_RELAXED);
    if (!stream->borrowers)
        change(stream, STREAM_BORROWED, STREAM_GONE); /* the program may destroy it from now on */
    pthread_mutex_unlock(&stream_lock);
}

int mgpu_rt_use_stream(hipStream_t handle) {
    runtime_start();
    struct thread *thread = thread_get();
    unchoose(thread);
    if (!handle)
        return 0;
    struct stream *stream = stream_known(handle);
    if (!stream)
        stream = enter(handle, hip_current_device(), STREAM_BORROWED);
    if (!stream)
        return -1;
    pthread_mutex_lock(&stream_lock);
    __atomic_store_n(&stream->borrowers, stream->borrowers + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&stream_lock);
    thread->chosen = stream;
    return 0;
}

void stream_thread_ends(struct thread *thread) {
    struct stream *stream = thread->stream;
    unchoose(thread);
    if (stream && change(stream, STREAM_FREE, STREAM_LIVE))
        put(&idle[stream->device], stream);
}

/* ---- for the manager ---- */

size_t stream_list(struct cached *out, size_t room) {
    size_t count = 0;
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        const int state = stream_state(stream);
        if (state == STREAM_GONE || state == STREAM_BORROWED)
            continue;
        if (count < room)
            out[count] = (struct cached){(void *)(uintptr_t)stream->handle.key, 0, 0,
                                         stream->device, state == STREAM_LIVE};
        count++;
    }
    return count;
}

hipError_t stream_evict(void *handle) {
    struct stream *stream = stream_known(handle);
    if (!stream)
        return hipErrorNotFound;
    if (!change(stream, STREAM_FREE, STREAM_LIVE) || !device_kept(stream->device))
        return hipErrorNotReady;
    stats_eviction(CACHE_STREAMS);
    return finish(stream);
}
