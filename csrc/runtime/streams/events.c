/* mgpuEventCreate, mgpuEventDestroy, mgpuEventSynchronize, mgpuEventRecord, mgpuStreamWaitEvent,
 * mgpuEventElapsedTime, and the cache of events. */
#include "streams/events.h"
#include "check.h"
#include "driver/cuda.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/hip.h"
#include "driver/refusal.h"
#include "driver/report.h"
#include "likely.h"
#include "mgpu.h"
#include "process/mapped.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/thread.h"
#include "streams/mgpu_stream.h"
#include "streams/streams.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"

#include <dlfcn.h>

/* The kinds of handle that a program may pass as an event. */
enum event_kind {
    EVENT_OURS,      /* an event that the program holds */
    EVENT_FOREIGN,   /* an event that this library does not know: HIP judges it */
    EVENT_STREAM,    /* a stream that exists in HIP and that this library knows */
    EVENT_DESTROYED, /* an event that the program has destroyed and that HIP still has */
};

struct event_found {
    enum event_kind kind;
    int state;           /* state of the entry */
    struct event *event; /* the entry of the handle, in any state; NULL: there is none */
};

/* the event for the program, or NULL and HIP's error */
struct event_acquired {
    hipEvent_t handle;
    enum call_how how; /* a hit, a miss or a bypass */
    hipError_t error;
};

static struct advice stream_as_event = {
    .text = "stream %p was passed as an event; give the token of a gpu.wait that returns one"};
static struct advice stream_served = {
    .text =
        "stream %p was passed to mgpuEventSynchronize or mgpuEventDestroy, as LLVM 22 and older do "
        "(llvm #170833): the library calls mgpuStreamSynchronize or mgpuStreamDestroy instead"};
static struct advice destroyed_event = {
    .text = "event %p was destroyed before; HIP may have given its handle to another event"};

static struct handle_map event_map = HANDLE_MAP(struct event);

static inline int event_state(const struct event *event) {
    return load_acquire(&event->state);
}

/* Returns true if the table in types.h lists this transition as a compare-and-swap. */
CHECKS bool event_may_change(int from, int to) {
    switch (from) {
    case EVENT_IDLE:
        return to == EVENT_PAST || to == EVENT_GONE;
    case EVENT_PAST:
        return to != EVENT_PAST;
    default:
        return from == EVENT_LIVE && (to == EVENT_IDLE || to == EVENT_GONE);
    }
}

static inline bool event_change(struct event *event, int from, int to) {
    CHECK(event_may_change(from, to));
    return cas_acq_rel(&event->state, &from, to);
}

/* EVENT_SLOTS, or 0 if events are not cached. */
static unsigned slots = EVENT_SLOTS;

/* In HIP 6.4.3 and 7.2.4, hipEventQuery reads the stream on which an event was last recorded, even
 * if that stream's memory was freed. HIP 7.2.4 then ends some processes with
 * std::bad_variant_access. Other code may have recorded the event on its own stream, so the library
 * cannot tell when the query is safe. Three queries to HIP would cost as much as the creation and
 * destruction of an event. */
static bool may_ask(void) {
    return cuda_present() || PROOF(hip_can_be_asked_about_events, hip_version < HIP_6_0);
}

void event_cache_open(void) {
    slots = cache_is_on(CACHE_EVENTS) && (exclusive_hip() || may_ask()) ? EVENT_SLOTS : 0;
}

void event_exclusive_ends(void) {
    if (!may_ask())
        store_relaxed(&slots, 0);
}

/* Returns false if MGPU_RT_CACHE excludes events, or the process asks for times. Also returns false
 * with AMD's HIP 6 and later, where a query of an event's last record is not safe. With
 * MGPU_RT_EXCLUSIVE=on the library makes no such query. */
static inline bool cache_serves(void) {
    return load_relaxed(&slots) != 0;
}

/* ---- what a handle is ---- */

/* Classifies a handle that is no event of the program. */
static __attribute__((noinline)) enum event_kind kind_of_other(const struct event *event,
                                                               hipEvent_t handle) {
    if (!caches_on())
        return EVENT_FOREIGN;
    if (event && device_kept(load_relaxed(&event->device)) &&
        PROOF(reset_has_not_ended_the_event, event_state(event) != EVENT_GONE))
        return EVENT_DESTROYED;
    return DOUBT(event_is_a_stream, handle && stream_is_here((hipStream_t)handle)) ? EVENT_STREAM
                                                                                   : EVENT_FOREIGN;
}

/* Classifies the handle of an event. Does not ask HIP about an event that the program holds. */
static inline struct event_found event_resolve(hipEvent_t handle) {
    struct event *event = handle_find(&event_map, handle);
    const int state = event ? event_state(event) : EVENT_GONE;
    if (LIKELY(event && !DOUBT(event_was_destroyed, state < EVENT_PAST)))
        return (struct event_found){EVENT_OURS, state, event};
    return (struct event_found){kind_of_other(event, handle), state, event};
}

struct event *event_held(hipEvent_t handle) {
    const struct event_found found = event_resolve(handle);
    return found.kind == EVENT_OURS ? found.event : NULL;
}

/* ---- events with timing ---- */

static const char timer[] = "mgpuEventElapsedTime";
static unsigned flags = hipEventDisableTiming;

/* Ends the caching of events, because the process asks for the time between events. An idle event
 * either cannot measure time, or has the time of an earlier owner's record. From here on each event
 * costs two calls to HIP. */
static void event_time_all(void) {
    if (exchange_relaxed(&flags, hipEventDefault) == hipEventDefault)
        return;
    PROOF_STEP(kept_event_has_no_time, store_relaxed(&slots, 0));
    device_ask_all();
    for (struct event *event = handle_first(&event_map); event; event = handle_next(event))
        if (event_change(event, EVENT_IDLE, EVENT_GONE))
            REPORT("hipEventDestroy(event)", hip.EventDestroy(event_handle(event)), NULL);
}

unsigned event_flags(void) {
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

/* Does nothing before the creation of the first event, because that creation checks whether the
 * program asks for times. */
void event_look_for_timer(void) {
    if (handle_first(&event_map))
        (void)event_flags();
}

/* ---- the common pool, oldest first, under tables_lock ---- */

static struct event *idle, **idle_end = &idle;

static void queue(struct event *event) {
    pthread_mutex_lock(&tables_lock);
    if (!event->queued) {
        event->queued = true;
        event->next_idle = NULL;
        *idle_end = event;
        idle_end = &event->next_idle;
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Removes the event *link from the common pool, and returns the event. */
static struct event *unqueue(struct event **link) {
    struct event *event = *link;
    CHECK(event->queued);
    if (!(*link = event->next_idle))
        idle_end = link;
    event->queued = false;
    return event;
}

/* Takes the oldest idle event of `device` from the common pool, and changes the event's state to
 * `state`. `device` may be ALL_DEVICES. Also removes events that are no longer idle. */
static struct event *take_queued_event(int device, int state) {
    struct event *found = NULL;
    pthread_mutex_lock(&tables_lock);
    for (struct event **link = &idle; *link && !found;) {
        const bool is_idle = event_state(*link) == EVENT_IDLE;
        if (is_idle &&
            !PROOF(event_is_of_the_device, of_device(device, load_relaxed(&(*link)->device)))) {
            link = &(*link)->next_idle;
            continue;
        }
        struct event *event = unqueue(link);
        if (PROOF(queued_event_is_taken_once, event_change(event, EVENT_IDLE, state)))
            found = event;
    }
    pthread_mutex_unlock(&tables_lock);
    return found;
}

/* Puts an event that the caller has taken into the common pool; does nothing for NULL. */
static void put_into_queue(struct event *event) {
    if (event && PROOF(busy_event_was_not_forgotten, event_change(event, EVENT_PAST, EVENT_IDLE)))
        queue(event);
}

/* ---- mgpuEventCreate ---- */

/* Returns whether the last record of an idle event is complete. If the record is pending, a wait
 * for the event would wait for an earlier owner's work. */
static bool is_over(const struct event *event) {
    return PROOF(last_record_is_complete,
                 exclusive_hip() || device_answered(hip.EventQuery(event_handle(event))));
}

/* Takes the thread's newest idle event. Returns NULL if there is none, the event belongs to another
 * device, or another thread has taken the event. */
static inline struct event *lookup_thread(struct thread *thread, int device) {
    struct event *event = thread->event_count ? thread->events[thread->event_count - 1] : NULL;
    if (UNLIKELY(!event || !PROOF(event_is_of_the_device, load_relaxed(&event->device) == device)))
        return NULL;
    thread->event_count--;
    return PROOF(own_event_is_spare, event_change(event, EVENT_IDLE, EVENT_PAST)) ? event : NULL;
}

/* Takes the device's oldest event from the common pool, then puts `busy` into the pool. `busy` is
 * an event with pending work, or NULL. Returns NULL if the pool has no such event, or the last
 * record of the oldest event is pending. */
static __attribute__((noinline)) struct event *take_other(struct event *busy, int device) {
    struct event *event = take_queued_event(device, EVENT_PAST);
    put_into_queue(busy);
    if (!event || is_over(event))
        return event;
    put_into_queue(event);
    return NULL;
}

void event_insert(hipEvent_t handle, int device) {
    struct event *event = handle_insert(&event_map, handle);
    if (!event)
        return;
    store_release(&event->state,
                  EVENT_GONE); /* the event may be idle: the program has destroyed it by calling HIP
                                */
    store_relaxed(&event->device, device);
    event->captured = NULL;
    store_release(&event->state, PROOF_VALUE(new_event_is_held, EVENT_LIVE, EVENT_IDLE));
    if (caches_on())
        device_watch(device);
}

static __attribute__((noinline)) struct event_acquired create_event(int device) {
    const unsigned flags = event_flags(); /* may end the caching of events */
    const bool serves = cache_serves() && device_has_caches(device);
    struct event_acquired made = {.how = serves ? CALL_MISS : CALL_BYPASS};
    made.error = RETRY(hip.EventCreateWithFlags(&made.handle, flags));
    if (made.handle && (made.how == CALL_MISS || flags == hipEventDefault))
        event_insert(made.handle, device);
    return made;
}

/* Takes the newest idle event of the thread, or else the oldest event of the common pool, or else a
 * new event from HIP. */
static inline struct event_acquired event_acquire(struct thread *thread, int device) {
    struct event *event = NULL;
    PROOF_STEP(reset_before_event_reuse, (void)device_kept(device));
    if (LIKELY(cache_serves())) {
        event = lookup_thread(thread, device);
        if (UNLIKELY(!event || !is_over(event)))
            event = take_other(event, device);
    }
    return LIKELY(event) ? (struct event_acquired){event_handle(event), CALL_HIT, hipSuccess}
                         : create_event(device);
}

static __attribute__((noinline)) void report_created(struct event_acquired made) {
    if (made.error == hipSuccess && made.how == CALL_MISS)
        stats_miss(CACHE_EVENTS);
    else
        call_tell(CALL_BYPASS);
    REPORT("hipEventCreateWithFlags(&event, hipEventDisableTiming)", made.error, NULL);
}

static inline hipEvent_t acquire_and_report(bool told) {
    struct thread *thread = thread_get();
    const struct event_acquired made = event_acquire(thread, hip_current_device());
    if (UNLIKELY(made.how != CALL_HIT))
        report_created(made);
    else if (told)
        call_tell(CALL_HIT);
    return made.handle;
}

hipEvent_t impl_mgpuEventCreate(void) {
    return acquire_and_report(false);
}

hipEvent_t told_mgpuEventCreate(void) {
    return acquire_and_report(true);
}

/* ---- calls that name an event ---- */

/* Returns true if HIP must not get the handle: the library then reports a failure of `expression`.
 */
static bool is_refused(struct event_found found, hipEvent_t handle, const char *expression) {
    if (LIKELY(found.kind <= EVENT_FOREIGN))
        return false;
    REPORT(expression, refusal_of_event(),
           found.kind == EVENT_STREAM ? &stream_as_event : &destroyed_event, (void *)handle);
    return true;
}

/* The token of a blocking gpu.wait may be a stream, if the token is a block argument. LLVM 22 and
 * older then lower the wait to mgpuEventSynchronize and mgpuEventDestroy. */
static bool is_served_as_stream(struct event_found found, hipEvent_t handle) {
    if (LIKELY(found.kind != EVENT_STREAM))
        return false;
    report_once(&stream_served, (void *)handle);
    return true;
}

/* Returns false if HIP has only the record of an earlier owner. The event's present owner has never
 * recorded the event, so there is nothing to wait for. If other code calls HIP, the program may
 * have recorded the event by calling HIP. HIP knows that record, and the earlier owner's work is
 * done. */
static inline bool may_be_recorded(struct event_found found) {
    return !exclusive_hip() || PROOF(owner_has_recorded_the_event, found.state != EVENT_PAST);
}

/* Queues or destroys an idle event for which the slots have no space. */
static __attribute__((noinline)) void release_slowly(struct event *event) {
    if (cache_serves())
        queue(event);
    else if (event_change(event, EVENT_IDLE, EVENT_GONE)) /* before HIP returns the handle again */
        REPORT("hipEventDestroy(event)", hip.EventDestroy(event_handle(event)), NULL);
}

void impl_mgpuEventDestroy(hipEvent_t handle) {
    static const char expression[] = "hipEventDestroy(event)";
    struct thread *thread = thread_get();
    struct event_found found;
    do /* repeated if another thread has just recorded or destroyed the event */
        found = event_resolve(handle);
    while (UNLIKELY(
        found.kind == EVENT_OURS &&
        !PROOF(event_is_released_once, event_change(found.event, found.state, EVENT_IDLE))));
    if (LIKELY(found.kind == EVENT_OURS)) {
        if (LIKELY(thread->event_count < load_relaxed(&slots)))
            thread->events[thread->event_count++] = found.event;
        else
            release_slowly(found.event);
    } else if (runtime_leaves(found.event)) {
        return;
    } else if (is_served_as_stream(found, handle)) {
        impl_mgpuStreamDestroy((hipStream_t)handle);
    } else if (!is_refused(found, handle, expression)) {
        REPORT(expression, hip.EventDestroy(handle), NULL);
    }
}

/* Does not mark as idle the stream on which this library recorded the event. The program may have
 * called HIP to record the event again, on another stream. HIP does not report which record of the
 * event the wait has covered. */
void impl_mgpuEventSynchronize(hipEvent_t handle) {
    static const char expression[] = "hipEventSynchronize(event)";
    struct thread *thread = thread_get();
    const struct event_found found = event_resolve(handle);
    if (is_served_as_stream(found, handle))
        stream_synchronize(thread, (hipStream_t)handle, expression);
    else if (!is_refused(found, handle, expression) && may_be_recorded(found))
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
    else if (found.state == EVENT_PAST)
        PROOF_STEP(record_is_its_owners, (void)event_change(found.event, EVENT_PAST, EVENT_LIVE));
    stream_submitted(thread, stream);
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, handle, &stream, expression))
        return;
    const struct event_found found = event_resolve(event_handle);
    if (is_refused(found, event_handle, expression) || !may_be_recorded(found))
        return;
    REPORT(expression, hip.StreamWaitEvent(handle, event_handle, 0), NULL);
    stream_launched(thread, stream); /* the stream may wait for kernels from now on */
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

/* ---- leaving ---- */

bool event_remove(struct event *event) {
    const int state = event_state(event);
    return state >= EVENT_PAST && event_change(event, state, EVENT_GONE);
}

static void release_slots(struct thread *thread) {
    while (!thread_is_none(thread) && thread->event_count)
        queue(thread->events[--thread->event_count]);
}

/* Each event is removed in a single step. With a removal in two steps, another thread could detect
 * a reset between the steps. The program could then create and destroy an event with the removed
 * event's handle, and create another event with that handle. The second step would then remove that
 * newest event. */
static int trim_events(int device) {
    struct event *event;
    int count = 0;
    release_slots(thread_get());
    const int gone = PROOF_VALUE(event_is_unknown_before_hip_has_it, EVENT_GONE, EVENT_PAST);
    for (; (event = take_queued_event(device, gone)); count++)
        REPORT("hipEventDestroy(event)", hip.EventDestroy(event_handle(event)), NULL);
    return count;
}

static void invalidate_events(int device) {
    for (struct event *event = handle_first(&event_map); event; event = handle_next(event))
        if (of_device(device, load_relaxed(&event->device)))
            PROOF_STEP(reset_ends_events, store_release(&event->state, EVENT_GONE));
}

const struct cache event_cache = {.name = "events",
                                  .trim = trim_events,
                                  .invalidate = invalidate_events,
                                  .thread_ends = release_slots};
