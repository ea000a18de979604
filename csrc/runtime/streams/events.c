/* mgpuEventCreate, mgpuEventDestroy, mgpuEventSynchronize, mgpuEventRecord, mgpuStreamWaitEvent,
 * mgpuEventElapsedTime. HIP creates and destroys each event. The library keeps a table of those
 * that the program holds, which tells events from streams and from other addresses. */
#include "driver/refusal.h"
#include "process/mapped.h"
#include "streams/joins.h"
#include "streams/mgpu_stream.h"

#include <dlfcn.h>

static struct advice stream_as_event = {
    .text = "stream %p was passed as an event; give an event, or in MLIR a token that no loop, "
            "branch or call passed on"};
static struct advice stream_served = {
    .text =
        "stream %p was passed to mgpuEventSynchronize or mgpuEventDestroy, as LLVM 22 and older do "
        "(llvm #170833): the library calls mgpuStreamSynchronize or mgpuStreamDestroy instead"};

static struct advice destroyed_event = {
    .text = "event %p was destroyed before; HIP may have given its handle to another event"};

/* A record adds this to an event's count of records, and takes 1 away at its end. */
#define RECORD_BEGINS ((UINT64_C(1) << 32) + 1)

static struct handle_map event_map = HANDLE_MAP(struct event);

/* ---- what a handle is ---- */

/* Returns the event, or NULL if the program does not hold it. */
static inline struct event *if_held(struct event *known) {
    return LIKELY(known && load_acquire(&known->state) == EVENT_LIVE) ? known : NULL;
}

struct event *event_held(hipEvent_t handle) {
    return if_held(handle_find(&event_map, handle));
}

/* Returns true if the program passes a stream in place of an event. `event` is the event that the
 * program holds under the handle, or NULL. */
static inline bool is_stream(const struct event *event, hipEvent_t handle) {
    return UNLIKELY(!event && handle) && caches_on() &&
           DOUBT(event_is_a_stream, stream_is_here((hipStream_t)handle));
}

/* Returns true if the program has destroyed the event, and HIP has given the handle to no other
 * event since. */
static __attribute__((noinline)) bool was_destroyed(const struct event *known) {
    return caches_on() && known && load_acquire(&known->state) == EVENT_DESTROYED &&
           PROOF(nobody_else_has_made_the_event, sole_user_of_hip());
}

/* Returns true if HIP must not get a handle of no event that the program holds: the library then
 * reports a failure of `expression`. HIP judges each handle that this library does not know.
 * `known` is the handle's entry, or NULL. */
static __attribute__((noinline)) bool is_refused(const struct event *known, hipEvent_t handle,
                                                 const char *expression) {
    const bool destroyed = was_destroyed(known), stream = is_stream(NULL, handle);
    if (!stream && !destroyed)
        return false;
    REPORT(expression, refusal_of_event(), stream ? &stream_as_event : &destroyed_event,
           (void *)handle);
    return true;
}

/* The token of a blocking gpu.wait may be a stream, if the token is a block argument. LLVM 22 and
 * older then lower the wait to mgpuEventSynchronize and mgpuEventDestroy. */
static bool is_served_as_stream(const struct event *event, hipEvent_t handle) {
    if (LIKELY(!is_stream(event, handle)))
        return false;
    report_once(&stream_served, (void *)handle);
    return true;
}

/* ---- events with timing ---- */

static const char timer[] = "mgpuEventElapsedTime";
static unsigned flags = hipEventDisableTiming;

/* Makes later events measure time, because the process asks for the time between events. */
static void event_time_all(void) {
    store_relaxed(&flags, hipEventDefault);
}

/* Returns the flags of a new event: hipEventDisableTiming, which stock also uses, or
 * hipEventDefault once the process asks for the time between events. A process asks for times if
 * its program or a library imports or defines mgpuEventElapsedTime, or has called
 * mgpuEventElapsedTime of this library. Checks only objects that are new since the last call. The
 * check takes 0.1 µs if there are no new objects. Otherwise the check takes 20 ns for each name
 * that a new object imports. */
static unsigned event_flags(void) {
    static unsigned long long looked_at;
    if (load_relaxed(&flags) == hipEventDefault || runtime_forked)
        return load_relaxed(&flags);
    const unsigned long long objects = mapped_objects();
    if (objects != exchange_relaxed(&looked_at, objects) &&
        (PROOF_VALUE(importer_asks_for_times, mapped_imports(timer), false) ||
         PROOF_VALUE(owner_of_a_timer_asks_for_times, mapped_function(timer) != NULL, false)))
        event_time_all();
    return load_relaxed(&flags);
}

/* ---- creation and destruction ---- */

hipEvent_t impl_mgpuEventCreate(void) {
    hipEvent_t handle = NULL;
    (void)thread_get();
    const unsigned wanted = event_flags();
    REPORT("hipEventCreateWithFlags(&event, hipEventDisableTiming)",
           RETRY(hip.EventCreateWithFlags(&handle, wanted)), NULL);
    if (!handle || (!caches_on() && wanted == hipEventDisableTiming))
        return handle;
    struct event *event = handle_insert(&event_map, handle);
    if (!event) /* if there is no memory for an entry, only HIP knows the event */
        return handle;
    fetch_add_relaxed(&event->records, RECORD_BEGINS - 1); /* this event has no record yet */
    event->graph = 0;
    event->captured = NULL;
    store_release(&event->state, EVENT_LIVE);
    return handle;
}

void impl_mgpuEventDestroy(hipEvent_t handle) {
    static const char expression[] = "hipEventDestroy(event)";
    (void)thread_get();
    struct event *known = handle_find(&event_map, handle);
    struct event *event = if_held(known);
    if (runtime_leaves(event))
        return;
    if (is_served_as_stream(event, handle)) {
        impl_mgpuStreamDestroy((hipStream_t)handle);
        return;
    }
    if (UNLIKELY(!event) && is_refused(known, handle, expression))
        return;
    if (LIKELY(event)) /* HIP may return the handle to another thread at once */
        PROOF_STEP(event_is_unknown_before_hip_has_it,
                   store_release(&event->state, EVENT_DESTROYED));
    REPORT(expression, hip.EventDestroy(handle), NULL);
}

/* ---- records and waits ---- */

/* Begins a record; returns the event's new count of records. */
static uint64_t begin_record(struct event *event) {
    return event ? add_fetch_acq_rel(&event->records, RECORD_BEGINS) : 0;
}

/* Ends a record, and notes its point. If another record overlaps this one, HIP does not tell which
 * is the last. Once no record is in progress, `records` then differs from noted - 1. */
static void end_record(struct event *event, uint64_t begun, const struct point *point) {
    if (!event)
        return;
    if (point->stream) {
        store_release(&event->point.stream, point->stream);
        store_release(&event->point.number, point->number);
        store_release(&event->noted, begun);
    }
    fetch_sub_release(&event->records, 1);
}

/* The last record of an event before a wait for the event. */
struct last_record {
    uint64_t records; /* the event's count of records */
    struct point point;
};

static struct last_record begin_wait(const struct event *event) {
    struct last_record last = {.records = event ? load_acquire(&event->records) : 0};
    if (event && PROOF(record_overlaps_no_other, (uint32_t)last.records == 0) &&
        PROOF(noted_record_is_the_last_one, load_acquire(&event->noted) == last.records + 1)) {
        last.point.stream = load_acquire(&event->point.stream);
        last.point.number = load_acquire(&event->point.number);
    }
    return last;
}

/* Returns true if HIP has waited for this record: no record has begun since, and no other code can
 * have recorded the event. */
static bool has_waited_for(const struct event *event, const struct last_record *last) {
    return last->point.stream &&
           PROOF(record_overlaps_no_wait, load_acquire(&event->records) == last->records) &&
           PROOF(nobody_else_records_events, sole_user_of_hip());
}

void impl_mgpuEventSynchronize(hipEvent_t handle) {
    static const char expression[] = "hipEventSynchronize(event)";
    struct thread *thread = thread_get();
    struct event *known = handle_find(&event_map, handle);
    struct event *event = if_held(known);
    if (is_served_as_stream(event, handle)) {
        stream_synchronize(thread, (hipStream_t)handle, expression);
        return;
    }
    if (UNLIKELY(!event) && is_refused(known, handle, expression))
        return;
    const struct last_record last = begin_wait(event);
    const hipError_t error = hip.EventSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, NULL);
    else if (has_waited_for(event, &last))
        stream_complete(last.point.stream, last.point.number);
}

void impl_mgpuEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
    static const char expression[] = "hipEventRecord(event, stream)";
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, stream_handle, &stream, expression))
        return;
    struct event *known = handle_find(&event_map, handle);
    struct event *event = if_held(known);
    if (UNLIKELY(!event) && is_refused(known, handle, expression))
        return;
    const uint64_t begun = begin_record(event);
    struct point point = join_point(event ? stream : NULL);
    const hipError_t error = hip.EventRecord(handle, stream_handle);
    join_recorded(stream, &point);
    if (UNLIKELY(error != hipSuccess)) {
        report_failure(expression, error, NULL);
        point.stream = NULL;
    }
    end_record(event, begun, &point);
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, handle, &stream, expression))
        return;
    struct event *known = handle_find(&event_map, event_handle);
    const struct event *event = if_held(known);
    if (UNLIKELY(!event) && is_refused(known, event_handle, expression))
        return;
    const struct last_record last = begin_wait(event);
    const hipError_t error = hip.StreamWaitEvent(handle, event_handle, 0);
    stream_launched(stream); /* the stream may wait for kernels from now on */
    if (UNLIKELY(error != hipSuccess))
        report_failure(expression, error, NULL);
    else if (stream && has_waited_for(event, &last))
        join_add(stream, &last.point);
}

/* ---- mgpuEventElapsedTime ---- */

static const char elapsed_expression[] = "hipEventElapsedTime(&milliseconds, start, stop)";
static struct advice no_time = {
    .text = "the time between events %p and %p is not known. Record both events, and create them "
            "after the process has first asked for times: link with mgpuEventElapsedTime, or call "
            "it with null pointers first (docs/stock.md)"};

typedef struct mgpu_elapsed elapsed_function(void *, void *, void *);

static struct mgpu_elapsed ask_elapsed(hipEvent_t start, hipEvent_t stop) {
    struct mgpu_elapsed elapsed = {0};
    elapsed.error = hip.EventElapsedTime(&elapsed.milliseconds, start, stop);
    REPORT(elapsed_expression, (hipError_t)elapsed.error, &no_time, (void *)start, (void *)stop);
    return elapsed;
}

/* Finds out what three pointers mean: two events, or a float's address and two events. The table of
 * this library's events decides: any other address may be anything. */
static struct mgpu_elapsed find_elapsed(void *first, void *second, void *third) {
    if (PROOF(first_is_an_event, event_held(first)) && event_held(second))
        return ask_elapsed(first, second);
    if (PROOF(others_are_events, event_held(second) && event_held(third))) {
        const struct mgpu_elapsed elapsed = ask_elapsed(second, third);
        if (first && elapsed.error == hipSuccess)
            *(float *)first = elapsed.milliseconds;
        return elapsed;
    }
    const hipError_t error = refusal_of_event();
    report_failure(elapsed_expression, error, &no_time, first, second);
    return (struct mgpu_elapsed){.error = error};
}

/* Finds the program's definition of mgpuEventElapsedTime; returns NULL if the program has none.
 * Also returns NULL if the loader finds the program's function before this library's function. In
 * that case the program's function was called first, and has called this library's function. */
static elapsed_function *find_own_timer(void) {
    const mapped_code own = runtime_forked ? NULL : mapped_function(timer);
    void *first = own ? dlsym(RTLD_DEFAULT, timer) : NULL;
    return DOUBT(own_timer_had_the_call, first == *(void *const *)&own) ? NULL
                                                                        : (elapsed_function *)own;
}

/* LLVM's own library lacks this function. If the program defines a function of this name (which may
 * print), the program's function answers, as with stock. A call with two null pointers only
 * announces that times will be requested. */
struct mgpu_elapsed impl_mgpuEventElapsedTime(void *first, void *second, void *late_third) {
    (void)thread_get();
    event_time_all();
    if (!first && !second) /* the program only announces that it will request times */
        return (struct mgpu_elapsed){.error = hipErrorInvalidHandle};
    elapsed_function *own = find_own_timer();
    return own ? own(first, second, late_third) : find_elapsed(first, second, late_third);
}
