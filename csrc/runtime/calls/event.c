/* mgpuEventCreate, mgpuEventDestroy, mgpuEventSynchronize, mgpuEventRecord, mgpuStreamWaitEvent,
 * mgpuEventElapsedTime. */
#include "base/counters.h"
#include "base/likely.h"
#include "base/options.h"
#include "base/proof.h"
#include "base/state.h"
#include "cache/caches.h"
#include "cache/events.h"
#include "cache/streams.h"
#include "cache/thread.h"
#include "cache/watch.h"
#include "calls/stream.h"
#include "hip/exclusive.h"
#include "hip/hip.h"
#include "hip/mapped.h"
#include "hip/refusal.h"
#include "hip/report.h"

#include <dlfcn.h>

static struct advice stream_as_event = {
    .text = "stream %p was passed as an event; give the token of a gpu.wait that returns one"};
static struct advice stream_served = {
    .text =
        "stream %p was passed to mgpuEventSynchronize or mgpuEventDestroy, as LLVM 22 and older "
        "do (llvm #170833): taken as mgpuStreamSynchronize and mgpuStreamDestroy"};
static struct advice destroyed_event = {
    .text = "event %p was destroyed before; HIP may have given its handle to another event"};

static const char elapsed_expression[] = "hipEventElapsedTime(&milliseconds, start, stop)";
static struct advice no_time = {
    .text = "there is no time between %p and %p. An event has one once it was recorded, and only "
            "if the process had asked for times when it was made: link with mgpuEventElapsedTime, "
            "or call it with null pointers before (docs/stock.md)"};

/* False if the handle is a stream or an event that was destroyed. The library has then reported it
 * as a failure of `expression`, and HIP is not to see it. */
static bool is_usable(const struct event *event, hipEvent_t handle, const char *expression) {
    if (LIKELY(event && event_is_held(event)) || !caches_on())
        return true;
    struct advice *advice = NULL;
    if (event && !event_is_kept(event))
        return true; /* the device was reset: another one's by now */
    if (event)
        advice = &destroyed_event;
    else if (handle && stream_is_here((hipStream_t)handle))
        advice = &stream_as_event;
    if (advice)
        REPORT(expression, refusal_of_event(), advice, (void *)handle);
    return advice == NULL;
}

/* False if it was recorded for an earlier owner only: for this one it counts as never recorded, and
 * there is nothing to wait for. If others call HIP, the program may have recorded it by a call of
 * its own. HIP knows, and the work of the owner before is over. */
static bool is_recorded(const struct event *event) {
    return !exclusive_hip() || !event ||
           PROOF(owner_has_recorded_the_event, event_state(event) != EVENT_PAST);
}

static __attribute__((noinline)) hipEvent_t create_event(int device) {
    const unsigned flags = event_flags();
    hipEvent_t handle = NULL;
    call_tell(CALL_BYPASS);
    REPORT("hipEventCreateWithFlags(&event, hipEventDisableTiming)", /* stock's line */
           RETRY(hip.EventCreateWithFlags(&handle, flags)), NULL);
    if (!handle || (flags != hipEventDefault && !event_cache_serves()))
        return handle;
    if (event_cache_serves())
        stats_miss(CACHE_EVENTS);
    event_enter(handle, device);
    return handle;
}

static inline hipEvent_t take_or_create(bool told) {
    struct thread *thread = thread_get();
    const int device = hip_current_device();
    struct event *event = event_take(thread, device);
    if (UNLIKELY(!event))
        return create_event(device);
    if (told)
        call_tell(CALL_HIT);
    return event_handle(event);
}

hipEvent_t impl_mgpuEventCreate(void) {
    return take_or_create(false);
}

hipEvent_t told_mgpuEventCreate(void) {
    return take_or_create(true);
}

/* A blocking gpu.wait may have a stream as its token, as a block argument. LLVM 22 and older then
 * lower it to mgpuEventSynchronize and mgpuEventDestroy. */
static bool is_stream(const struct event *event, hipEvent_t handle) {
    if (LIKELY(event || !handle || !caches_on()) ||
        !DOUBT(event_is_a_stream, stream_is_here((hipStream_t)handle)))
        return false;
    report_once(&stream_served, (void *)handle);
    return true;
}

void impl_mgpuEventDestroy(hipEvent_t handle) {
    static const char expression[] = "hipEventDestroy(event)";
    struct thread *thread = thread_get();
    struct event *event = event_known(handle);
    if (LIKELY(event && event_release(thread, event)))
        return;
    if (is_stream(event, handle))
        impl_mgpuStreamDestroy((hipStream_t)handle);
    else if (!runtime_leaves(handle_find(&event_map, handle)) &&
             is_usable(event, handle, expression) && !event_known(handle))
        REPORT(expression, hip.EventDestroy(handle), NULL);
}

/* Says nothing of the stream that we have recorded it on. The program may have recorded it on
 * another one since, by HIP itself. HIP does not tell which record it has waited for. */
void impl_mgpuEventSynchronize(hipEvent_t handle) {
    static const char expression[] = "hipEventSynchronize(event)";
    struct thread *thread = thread_get();
    const struct event *event = event_known(handle);
    if (UNLIKELY(is_stream(event, handle)))
        stream_synchronize(thread, (hipStream_t)handle, expression);
    else if (is_usable(event, handle, expression) && is_recorded(event))
        REPORT(expression, hip.EventSynchronize(handle), NULL);
}

void impl_mgpuEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
    static const char expression[] = "hipEventRecord(event, stream)";
    struct thread *thread = thread_get();
    struct stream *stream;
    struct event *event = event_known(handle);
    if (!stream_usable(thread, stream_handle, &stream, expression) ||
        !is_usable(event, handle, expression))
        return;
    const hipError_t error = hip.EventRecord(handle, stream_handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, NULL);
    else if (event)
        event_note_record(event);
    stream_submitted(thread, stream);
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct stream *stream;
    const struct event *event = event_known(event_handle);
    if (!stream_usable(thread_get(), handle, &stream, expression) ||
        !is_usable(event, event_handle, expression) || !is_recorded(event))
        return;
    REPORT(expression, hip.StreamWaitEvent(handle, event_handle, 0), NULL);
    stream_launched(thread_get(), stream); /* it now depends on kernels, perhaps */
}

/* ---- mgpuEventElapsedTime ---- */

typedef struct mgpu_elapsed elapsed_function(void *, void *, void *);

static bool is_held(void *handle) {
    const struct event *event = event_known(handle);
    return event && event_is_held(event);
}

static struct mgpu_elapsed ask_elapsed(hipEvent_t start, hipEvent_t stop) {
    struct mgpu_elapsed elapsed = {0};
    elapsed.error = hip.EventElapsedTime(&elapsed.milliseconds, start, stop);
    REPORT(elapsed_expression, (hipError_t)elapsed.error, &no_time, (void *)start, (void *)stop);
    return elapsed;
}

/* Two events, or a float's address and two events. Which of the two is known by the events that
 * this library has handed out: any other address may be anything. */
static struct mgpu_elapsed find_elapsed(void *first, void *second, void *third) {
    if (PROOF(first_is_an_event, is_held(first)) && is_held(second))
        return ask_elapsed(first, second);
    if (!PROOF(others_are_events, is_held(second) && is_held(third))) {
        const hipError_t error = refusal_of_event();
        report_failure(elapsed_expression, error, &no_time, first, second);
        return (struct mgpu_elapsed){.error = error};
    }
    const struct mgpu_elapsed elapsed = ask_elapsed(second, third);
    if (first && elapsed.error == hipSuccess)
        *(float *)first = elapsed.milliseconds;
    return elapsed;
}

/* Finds an mgpuEventElapsedTime of the program. NULL if there is none. NULL too if the loader has
 * it before ours: then it had the program's call, and called ours. */
static elapsed_function *find_own_timer(void) {
    static const char name[] = "mgpuEventElapsedTime";
    const mapped_code own = runtime_forked ? NULL : mapped_function(name);
    void *first = own ? dlsym(RTLD_DEFAULT, name) : NULL;
    return DOUBT(own_timer_had_the_call, first == *(void *const *)&own) ? NULL
                                                                        : (elapsed_function *)own;
}

/* LLVM's own library lacks this function. If the program has one of its own, perhaps one that
 * prints, that answers, as with stock. A call with two null pointers only asks for times. */
struct mgpu_elapsed impl_mgpuEventElapsedTime(void *first, void *second, void *late_third) {
    (void)thread_get();
    event_time_all();
    if (!first && !second) /* that was the question */
        return (struct mgpu_elapsed){.error = hipErrorInvalidHandle};
    elapsed_function *own = find_own_timer();
    return own ? own(first, second, late_third) : find_elapsed(first, second, late_third);
}
