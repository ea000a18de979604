/* mgpuStreamCreate, mgpuStreamDestroy, mgpuStreamSynchronize, mgpuStreamWaitEvent.
 *
 * A hit of create is one compare-and-swap on the thread's own last stream, a hit of destroy the
 * same; neither asks HIP. */
#include "stream.h"
#include "event.h"
#include "exclusive.h"
#include "lazy.h"
#include "mgpu_rt.h"
#include "policy.h"
#include "python.h"
#include "registry.h"
#include "staging.h"

#include <stdlib.h>

enum { QUERIES_PER_CREATE = 8, RECENT = 64, TRIM_EVERY = 16 };

struct handle_map stream_map;
bool stream_others_busy;

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

/* Leaves the thread's last error as it was: a query of a busy stream sets it to hipErrorNotReady,
 * which a program may read; HIP has no way to set it back to an earlier error, so with one pending
 * the answer is a cautious no. */
bool stream_query(struct stream *stream) {
    if (hip.PeekAtLastError() != hipSuccess)
        return false;
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = hip.StreamQuery((hipStream_t)stream->handle.key);
    if (error == hipSuccess)
        stream_pass(stream, mark);
    else
        (void)hip.GetLastError();
    return error == hipSuccess;
}

bool stream_query_unheld(struct stream *stream) {
    int state = stream_state(stream);
    if ((state != STREAM_FREE && state != STREAM_RETIRED) || !change(stream, state, STREAM_LIVE))
        return false;
    const bool done = stream_query(stream);
    change(stream, STREAM_LIVE, state);
    return done;
}

/* Streams that were given back lately, where they are easily found: hints, each may be held again.
 * A program that leaks a stream each time (some lowered ones do) must not make every create look at
 * all of them. */
static struct stream *recent[RECENT];
static size_t total; /* streams in the table; written under registry_lock */

static bool are_many(void) {
    return __atomic_load_n(&total, __ATOMIC_RELAXED) > RECENT;
}

static bool is_on(const struct stream *stream, int device) {
    return __atomic_load_n(&stream->device, __ATOMIC_RELAXED) == device;
}

static void remember(struct stream *stream) {
    const size_t slot = (uintptr_t)stream / sizeof *stream % RECENT;
    if (stream)
        __atomic_store_n(&recent[slot], stream, __ATOMIC_RELEASE);
}

void stream_give_back(struct thread *thread) {
    remember(thread->stream);
}

static struct stream *take_free(int device) {
    for (size_t i = 0; i < RECENT && are_many(); i++) {
        struct stream *stream = __atomic_load_n(&recent[i], __ATOMIC_ACQUIRE);
        if (stream && is_on(stream, device) && change(stream, STREAM_FREE, STREAM_LIVE))
            return stream;
    }
    for (struct stream *stream = are_many() ? NULL : stream_first(); stream;
         stream = stream_next(stream))
        if (is_on(stream, device) && change(stream, STREAM_FREE, STREAM_LIVE))
            return stream;
    return NULL;
}

/* Takes a stream that was given back with work pending, if its work is done by now. */
static bool take_done(struct stream *stream, int device, int *queries) {
    if (!is_on(stream, device) || *queries == QUERIES_PER_CREATE ||
        !change(stream, STREAM_RETIRED, STREAM_LIVE))
        return false;
    ++*queries;
    if (stream_query(stream)) {
        __atomic_store_n(&stream->busy, STREAM_IDLE, __ATOMIC_RELEASE);
        return true;
    }
    change(stream, STREAM_LIVE, STREAM_RETIRED);
    return false;
}

static struct stream *take_retired(int device) {
    int queries = 0;
    for (size_t i = 0; i < RECENT && are_many(); i++) {
        struct stream *stream = __atomic_load_n(&recent[i], __ATOMIC_ACQUIRE);
        if (stream && take_done(stream, device, &queries))
            return stream;
    }
    for (struct stream *stream = are_many() ? NULL : stream_first(); stream;
         stream = stream_next(stream))
        if (take_done(stream, device, &queries))
            return stream;
    return NULL;
}

/* The entry of a handle that HIP has just returned. */
static struct stream *enter(hipStream_t handle, int device, int state) {
    pthread_mutex_lock(&registry_lock);
    struct stream *stream = handle_find(&stream_map, handle);
    if (!stream && (stream = aligned_alloc(64, sizeof *stream))) {
        *stream = (struct stream){.handle.key = handle, .device = device, .state = STREAM_GONE};
        __atomic_store_n(&total, total + 1, __ATOMIC_RELAXED);
        handle_add(&stream_map, &stream->handle);
    }
    if (stream) {
        __atomic_store_n(&stream->device, device, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->busy, STREAM_IDLE, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->state, state, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&registry_lock);
    return stream;
}

/* The thread's last stream from now on; the one before may have been given back already. */
static void use(struct thread *thread, struct stream *stream) {
    remember(thread->stream);
    thread->stream = stream;
}

static hipStream_t create_new(struct thread *thread, int device) {
    void *handle = NULL;
    const hipError_t error = policy_get()->stream_create(device, &handle);
    runtime_register_exit();
    if (error != hipSuccess) {
        report_failure("hipStreamCreate(&stream)", error, NULL);
        return NULL;
    }
    struct stream *stream = enter(handle, device, STREAM_LIVE);
    if (stream)
        use(thread, stream);
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

static __attribute__((noinline)) hipStream_t create_slow(struct thread *thread, int device) {
    if (thread->chosen) {
        stats_bypass(CACHE_STREAMS);
        return (hipStream_t)thread->chosen->handle.key;
    }
    if (!options.cache_on) {
        hipStream_t handle = NULL;
        stats_bypass(CACHE_STREAMS);
        REPORT("hipStreamCreate(&stream)", hip.StreamCreate(&handle), NULL);
        return handle;
    }
    if (UNLIKELY(options.sync_lazy))
        note_several();
    struct stream *stream = take_free(device);
    if (!stream)
        stream = take_retired(device);
    if (stream) {
        use(thread, stream);
        return (hipStream_t)stream->handle.key;
    }
    stats_miss(CACHE_STREAMS);
    return create_new(thread, device);
}

hipStream_t impl_mgpuStreamCreate(void) {
    struct thread *thread = thread_get();
    struct stream *stream = thread->stream;
    const int device = hip_current_device();
    if (LIKELY(stream && stream->device == device && !thread->chosen &&
               change(stream, STREAM_FREE, STREAM_LIVE)))
        return (hipStream_t)stream->handle.key;
    return create_slow(thread, device);
}

hipError_t stream_finish(struct stream *stream) {
    lazy_settle(NULL);
    const uint64_t mark = stream_set_mark(stream);
    if (mark && hip.StreamSynchronize((hipStream_t)stream->handle.key) == hipSuccess)
        stream_pass(stream, mark);
    staging_free(stream);
    return policy_serving()->stream_destroy((void *)stream->handle.key);
}

/* More idle streams than the limit: HIP gets one back. */
static void trim(struct stream *stream) {
    static unsigned calls;
    if (are_many() && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % TRIM_EVERY != 0)
        return; /* counting looks at all of them */
    if (stream_count_idle() <= (size_t)options.stream_limit_count)
        return;
    if (!stream_retire((hipStream_t)stream->handle.key))
        return;
    stats_eviction(CACHE_STREAMS);
    REPORT("hipStreamDestroy(stream)", stream_finish(stream), NULL);
}

void impl_mgpuStreamDestroy(hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    const int state = LIKELY(stream) ? stream_state(stream) : STREAM_GONE;
    if (UNLIKELY(state == STREAM_GONE)) {
        REPORT("hipStreamDestroy(stream)", hip.StreamDestroy(handle),
               handle ? &destroyed_twice : &null_destroyed, (void *)handle);
        return;
    }
    if (UNLIKELY(state == STREAM_BORROWED))
        return;
    const uintptr_t busy = __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE);
    const bool idle = LIKELY(busy == STREAM_IDLE) || busy == STREAM_PUT_OFF;
    if (UNLIKELY(!change(stream, STREAM_LIVE, idle ? STREAM_FREE : STREAM_RETIRED))) {
        report_failure("hipStreamDestroy(stream)", hipErrorContextIsDestroyed, &destroyed_twice,
                       (void *)handle);
        return;
    }
    if (UNLIKELY(stream != thread->stream || !idle)) {
        remember(stream);
        trim(stream);
    }
}

bool stream_report_dead(hipStream_t handle, const char *expression) {
    report_failure(expression, hipErrorContextIsDestroyed, &used_after_destroy, (void *)handle);
    return false;
}

/* The stream is idle afterwards unless another thread has submitted to it or has begun to
 * synchronise it meanwhile: then its busy is not this thread's any more. */
hipError_t stream_wait(struct thread *thread, struct stream *stream) {
    uintptr_t token = (uintptr_t)thread;
    const uint64_t mark = stream_set_mark(stream);
    __atomic_store_n(&stream->busy, token, __ATOMIC_RELEASE);
    const hipError_t error = hip.StreamSynchronize((hipStream_t)stream->handle.key);
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
    return __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE) == STREAM_IDLE &&
           stream_state(stream) == STREAM_LIVE && exclusive_hip();
}

void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression) {
    struct stream *stream;
    /* One that was given back is reported and waited for all the same: stock's destroy would have
     * waited for its work. */
    const bool usable = stream_usable(thread, handle, &stream, expression);
    if (UNLIKELY(!usable && stream_state(stream) == STREAM_GONE))
        return;
    if (UNLIKELY(stream && is_known_idle(stream)))
        return;
    if (UNLIKELY(options.sync_lazy && stream && lazy_put_off(stream)))
        return;
    const hipError_t error =
        LIKELY(stream) ? stream_wait(thread, stream) : hip.StreamSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, &stream_fault);
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
    REPORT(expression, hip.StreamWaitEvent(handle, event, 0), NULL);
    stream_launched(stream); /* it now depends on kernels, perhaps */
}

bool stream_any_busy(void) {
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (stream_state(stream) != STREAM_GONE && __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

size_t stream_count_idle(void) {
    size_t count = 0;
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        count += stream_state(stream) == STREAM_FREE;
    return count;
}

bool stream_retire(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    return stream && change(stream, STREAM_FREE, STREAM_GONE);
}

int mgpu_rt_use_stream(hipStream_t handle) {
    runtime_start();
    struct thread *thread = thread_get();
    thread->chosen = NULL;
    if (!handle)
        return 0;
    struct stream *known = stream_known(handle);
    thread->chosen = known ? known : enter(handle, hip_current_device(), STREAM_BORROWED);
    return thread->chosen ? 0 : -1;
}
