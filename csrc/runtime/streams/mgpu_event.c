/* mgpuEventCreate, mgpuEventDestroy, mgpuEventSynchronize, mgpuEventRecord, mgpuStreamWaitEvent,
 * mgpuEventElapsedTime. */
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "likely.h"
#include "process/mapped.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "streams/events.h"
#include "streams/mgpu_stream.h"
#include "streams/streams.h"
#include "telemetry/counters.h"

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

/* True if HIP is not to see the handle: the library then reports a failure of `expression`. */
static bool is_refused(struct event_found found, hipEvent_t handle, const char *expression) {
    if (LIKELY(found.kind <= EVENT_FOREIGN))
        return false;
    REPORT(expression, refusal_of_event(),
           found.kind == EVENT_STREAM ? &stream_as_event : &destroyed_event, (void *)handle);
    return true;
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
    event_insert(handle, device);
    return handle;
}

static inline hipEvent_t take_or_create(bool told) {
    struct thread *thread = thread_get();
    const int device = hip_current_device();
    struct event *event = event_acquire(thread, device);
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
static bool is_served_as_stream(struct event_found found, hipEvent_t handle) {
    if (LIKELY(found.kind != EVENT_STREAM))
        return false;
    report_once(&stream_served, (void *)handle);
    return true;
}

void impl_mgpuEventDestroy(hipEvent_t handle) {
    static const char expression[] = "hipEventDestroy(event)";
    const struct event_found found = event_release(thread_get(), handle);
    if (LIKELY(found.kind == EVENT_OURS) || runtime_leaves(found.event))
        return;
    if (is_served_as_stream(found, handle))
        impl_mgpuStreamDestroy((hipStream_t)handle);
    else if (!is_refused(found, handle, expression))
        REPORT(expression, hip.EventDestroy(handle), NULL);
}

/* Says nothing of the stream that we have recorded it on. The program may have recorded it on
 * another one since, by HIP itself. HIP does not tell which record it has waited for. */
void impl_mgpuEventSynchronize(hipEvent_t handle) {
    static const char expression[] = "hipEventSynchronize(event)";
    struct thread *thread = thread_get();
    const struct event_found found = event_resolve(handle);
    if (is_served_as_stream(found, handle))
        stream_synchronize(thread, (hipStream_t)handle, expression);
    else if (!is_refused(found, handle, expression) && event_may_be_recorded(found))
        REPORT(expression, hip.EventSynchronize(handle), NULL);
}

void impl_mgpuEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
    static const char expression[] = "hipEventRecord(event, stream)";
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, stream_handle, &stream, expression))
        return;
    const struct event_found found = event_resolve(handle);
    if (is_refused(found, handle, expression))
        return;
    const hipError_t error = hip.EventRecord(handle, stream_handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, NULL);
    else
        event_note_record(found);
    stream_submitted(thread, stream);
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, handle, &stream, expression))
        return;
    const struct event_found found = event_resolve(event_handle);
    if (is_refused(found, event_handle, expression) || !event_may_be_recorded(found))
        return;
    REPORT(expression, hip.StreamWaitEvent(handle, event_handle, 0), NULL);
    stream_launched(thread, stream); /* it now depends on kernels, perhaps */
}

/* ---- mgpuEventElapsedTime ---- */

typedef struct mgpu_elapsed elapsed_function(void *, void *, void *);

static struct mgpu_elapsed ask_elapsed(hipEvent_t start, hipEvent_t stop) {
    struct mgpu_elapsed elapsed = {0};
    elapsed.error = hip.EventElapsedTime(&elapsed.milliseconds, start, stop);
    REPORT(elapsed_expression, (hipError_t)elapsed.error, &no_time, (void *)start, (void *)stop);
    return elapsed;
}

/* Two events, or a float's address and two events. Which of the two is known by the events that
 * this library has handed out: any other address may be anything. */
static struct mgpu_elapsed find_elapsed(void *first, void *second, void *third) {
    if (PROOF(first_is_an_event, event_held(first)) && event_held(second))
        return ask_elapsed(first, second);
    if (!PROOF(others_are_events, event_held(second) && event_held(third))) {
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
