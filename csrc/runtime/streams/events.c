#include "streams/events.h"
#include "check.h"
#include "driver/cuda.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "likely.h"
#include "mgpu.h"
#include "process/mapped.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "shared/reset.h"
#include "streams/streams.h"

struct handle_map event_map = HANDLE_MAP(struct event);

static inline int event_state(const struct event *event) {
    return load_acquire(&event->state);
}

/* The rows of the table in types.h that are a compare-and-swap. */
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

/* HIP 6.4.3's and 7.2.4's hipEventQuery read the stream that an event was recorded on last, though
 * that is destroyed and its memory is freed. 7.2.4 then ends some processes by
 * std::bad_variant_access. Others may have recorded it on a stream of theirs, so nothing here tells
 * when the question is safe. Creating an event and destroying it costs 3 questions there. */
void event_cache_open(void) {
    const bool may_ask =
        cuda_present() || PROOF(hip_can_be_asked_about_events, hip_version < HIP_6_0);
    slots = cache_is_on(CACHE_EVENTS) && (exclusive_hip() || may_ask) ? EVENT_SLOTS : 0;
}

bool event_cache_serves(void) {
    return load_relaxed(&slots) != 0;
}

/* ---- what a handle is ---- */

/* A handle that is no event of the program's. */
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

struct event_found event_resolve(hipEvent_t handle) {
    struct event *event = handle_find(&event_map, handle);
    const int state = event ? event_state(event) : EVENT_GONE;
    if (LIKELY(event && !DOUBT(event_was_destroyed, state < EVENT_PAST)))
        return (struct event_found){EVENT_OURS, state, event};
    return (struct event_found){kind_of_other(event, handle), state, event};
}

/* ---- events with timing ---- */

static const char timer[] = "mgpuEventElapsedTime";
static unsigned flags = hipEventDisableTiming;

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

/* Without events the first one will look. */
void event_look_for_timer(void) {
    if (handle_first(&event_map))
        (void)event_flags();
}

void event_time_all(void) {
    if (exchange_relaxed(&flags, hipEventDefault) == hipEventDefault)
        return;
    PROOF_STEP(kept_event_has_no_time, store_relaxed(&slots, 0));
    device_ask_all();
    for (struct event *event = handle_first(&event_map); event; event = handle_next(event))
        if (event_change(event, EVENT_IDLE, EVENT_GONE))
            REPORT("hipEventDestroy(event)", hip.EventDestroy(event_handle(event)), NULL);
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

/* Takes the event out that *link leads to. */
static struct event *unqueue(struct event **link) {
    struct event *event = *link;
    CHECK(event->queued);
    if (!(*link = event->next_idle))
        idle_end = link;
    event->queued = false;
    return event;
}

/* Takes the oldest idle event of a device, or of any, and moves it to `state`. Drops what is idle
 * no longer. */
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

/* An event that the caller has taken. */
static void put_into_queue(struct event *event) {
    if (event && PROOF(busy_event_was_not_forgotten, event_change(event, EVENT_PAST, EVENT_IDLE)))
        queue(event);
}

/* ---- taking ---- */

/* Whether the last record of a kept event is complete. Otherwise a wait for the event would wait
 * for the work of an earlier owner. */
static bool is_over(const struct event *event) {
    return PROOF(last_record_is_complete,
                 exclusive_hip() || device_answered(hip.EventQuery(event_handle(event))));
}

/* The thread's newest one. */
static inline struct event *lookup_thread(struct thread *thread, int device) {
    struct event *event = thread->event_count ? thread->events[thread->event_count - 1] : NULL;
    if (UNLIKELY(!event || !PROOF(event_is_of_the_device, load_relaxed(&event->device) == device)))
        return NULL;
    thread->event_count--;
    return PROOF(own_event_is_spare, event_change(event, EVENT_IDLE, EVENT_PAST)) ? event : NULL;
}

/* Not the one that the thread has just found to be at work. */
static __attribute__((noinline)) struct event *take_other(struct event *busy, int device) {
    struct event *event = take_queued_event(device, EVENT_PAST);
    put_into_queue(busy);
    if (!event || is_over(event))
        return event;
    put_into_queue(event);
    return NULL;
}

struct event *event_acquire(struct thread *thread, int device) {
    PROOF_STEP(reset_before_event_reuse, (void)device_kept(device));
    if (UNLIKELY(!event_cache_serves()))
        return NULL;
    struct event *event = lookup_thread(thread, device);
    return LIKELY(event && is_over(event)) ? event : take_other(event, device);
}

/* ---- entering, recording, releasing ---- */

void event_insert(hipEvent_t handle, int device) {
    struct event *event = handle_insert(&event_map, handle);
    if (!event)
        return;
    store_release(&event->state,
                  EVENT_GONE); /* it may be idle: the program has had HIP destroy it */
    store_relaxed(&event->device, device);
    event->captured = NULL;
    store_release(&event->state, PROOF_VALUE(new_event_is_held, EVENT_LIVE, EVENT_IDLE));
    if (caches_on())
        device_watch(device);
}

void event_note_record(struct event_found found) {
    if (found.state == EVENT_PAST)
        PROOF_STEP(record_is_its_owners, (void)event_change(found.event, EVENT_PAST, EVENT_LIVE));
}

/* An idle event that the slots have no room for. */
static __attribute__((noinline)) void release_slowly(struct event *event) {
    if (event_cache_serves())
        queue(event);
    else if (event_change(event, EVENT_IDLE, EVENT_GONE)) /* before HIP hands it out anew */
        REPORT("hipEventDestroy(event)", hip.EventDestroy(event_handle(event)), NULL);
}

struct event_found event_release(struct thread *thread, hipEvent_t handle) {
    struct event_found found;
    do { /* once more if another thread has recorded or destroyed it just now */
        found = event_resolve(handle);
        if (UNLIKELY(found.kind != EVENT_OURS))
            return found;
    } while (UNLIKELY(
        !PROOF(event_is_released_once, event_change(found.event, found.state, EVENT_IDLE))));
    if (LIKELY(thread->event_count < load_relaxed(&slots)))
        thread->events[thread->event_count++] = found.event;
    else
        release_slowly(found.event);
    return found;
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

/* Each leaves in one step. In two, another thread may see a reset in between. The program may then
 * create, destroy and create an event of the same handle, which looks like the one in hand. */
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
