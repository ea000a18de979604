/* mgpuEventCreate, mgpuEventDestroy, mgpuEventSynchronize, mgpuEventRecord, mgpuStreamWaitEvent.
 *
 * Each thread keeps a few spare events; a thread that only creates or only destroys exchanges them
 * with the others through a common pool. A hit takes no lock; unless the process is the runtime's
 * alone (exclusive.h), HIP is asked whether the event's last record is complete. */
#include "calls/event.h"
#include "base/atomics.h"
#include "base/counters.h"
#include "base/handles.h"
#include "base/likely.h"
#include "base/options.h"
#include "base/state.h"
#include "cache/streams.h"
#include "calls/stream.h"
#include "hip/device.h"
#include "hip/exclusive.h"
#include "hip/hip.h"
#include "hip/refusal.h"
#include "hip/report.h"

#include <stdlib.h>

struct event {
    struct handle handle;
    struct event *next_spare; /* chain of the common pool */
    int device;
    bool live;             /* held by the program */
    bool gone;             /* HIP has destroyed it */
    bool reused;           /* had an owner before this one */
    bool recorded;         /* by this owner */
    struct stream *stream; /* where it was recorded last, if that is a stream of the table's */
    uint64_t mark;         /* of that stream, when it was recorded */
};

static struct handle_map event_map;
/* The common pool, oldest first, under tables_lock. */
static struct event *spare, **spare_end = &spare;

static struct advice stream_as_event = {
    .text = "stream %p was passed as an event; give the token of a gpu.wait that returns one"};
static struct advice stream_served = {
    .text =
        "stream %p was passed to mgpuEventSynchronize or mgpuEventDestroy, as LLVM 22 and older "
        "do (llvm #170833): taken as mgpuStreamSynchronize and mgpuStreamDestroy"};
static struct advice destroyed_event = {
    .text = "event %p was destroyed before; its handle may already serve somebody else"};

static struct event *find_event(hipEvent_t handle) {
    struct event *event = handle ? handle_find(&event_map, handle) : NULL;
    return event && !event->gone ? event : NULL;
}

bool event_usable(hipEvent_t handle, const char *expression) {
    const struct event *event = find_event(handle);
    if (LIKELY(event && event->live) || !options.cache_on)
        return true;
    struct advice *advice = NULL;
    if (event && !device_kept(event->device))
        return true; /* the device was reset: another one's by now */
    if (event)
        advice = &destroyed_event;
    else if (handle && stream_is_here((hipStream_t)handle))
        advice = &stream_as_event;
    if (advice)
        REPORT(expression, refusal_of_event(), advice, (void *)handle);
    return advice == NULL;
}

/* Where others call HIP, the program may have recorded it by a call of its own: HIP knows, and what
 * it knows of the owner before is over (is_over). */
bool event_recorded(hipEvent_t handle) {
    const struct event *event = find_event(handle);
    return !exclusive_hip() || !event || event->recorded || !event->reused;
}

/* Whether the last record of an event that was kept is complete, so that a wait for it does not
 * wait for what an earlier owner recorded. */
static bool is_over(struct event *event) {
    if (exclusive_hip())
        return true;
    if (!device_kept(event->device))
        return false;
    const hipError_t error = hip.EventQuery((hipEvent_t)event->handle.key);
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess;
}

/* From the common pool. */
static struct event *take_spare(int device) {
    pthread_mutex_lock(&tables_lock);
    struct event **link = &spare;
    while (*link && (*link)->device != device)
        link = &(*link)->next_spare;
    struct event *event = *link;
    if (event && !(*link = event->next_spare))
        spare_end = link;
    pthread_mutex_unlock(&tables_lock);
    return event;
}

static void put_spare(struct event *event) {
    pthread_mutex_lock(&tables_lock);
    event->next_spare = NULL;
    *spare_end = event;
    spare_end = &event->next_spare;
    pthread_mutex_unlock(&tables_lock);
}

static hipEvent_t hand_out_event(struct event *event) {
    event->live = event->reused = true;
    event->recorded = false;
    return (hipEvent_t)event->handle.key;
}

static void enter_event(hipEvent_t handle, int device) {
    pthread_mutex_lock(&tables_lock);
    struct event *event = handle_find(&event_map, handle);
    if (!event && (event = calloc(1, sizeof *event))) {
        event->handle.key = handle;
        handle_add(&event_map, &event->handle);
    }
    if (event) {
        event->device = device;
        event->live = true;
        event->gone = event->reused = event->recorded = false;
        event->stream = NULL;
    }
    pthread_mutex_unlock(&tables_lock);
    device_watch(device);
}

static __attribute__((noinline)) hipEvent_t create_event_slow(int device) {
    struct event *event = options.cache_on ? take_spare(device) : NULL;
    if (event && is_over(event))
        return hand_out_event(event);
    if (event && !event->gone)
        put_spare(event);
    if (options.cache_on)
        stats_miss(CACHE_EVENTS);
    else
        stats_bypass(CACHE_EVENTS);
    hipEvent_t handle = NULL;
    REPORT("hipEventCreateWithFlags(&event, hipEventDisableTiming)",
           RETRY(hip.EventCreateWithFlags(&handle, hipEventDisableTiming)), NULL);
    if (handle && options.cache_on)
        enter_event(handle, device);
    return handle;
}

hipEvent_t impl_mgpuEventCreate(void) {
    struct thread *thread = thread_get();
    const int device = hip_current_device();
    if (LIKELY(thread->event_count && thread->events[thread->event_count - 1]->device == device &&
               is_over(thread->events[thread->event_count - 1])))
        return hand_out_event(thread->events[--thread->event_count]);
    return create_event_slow(device);
}

/* LLVM 22 and older lower a blocking gpu.wait on a token that is a block argument to
 * mgpuEventSynchronize and mgpuEventDestroy, though the token may be a stream. */
static bool is_stream(hipEvent_t handle) {
    if (LIKELY(find_event(handle) || !handle || !options.cache_on) ||
        !stream_is_here((hipStream_t)handle))
        return false;
    report_once(&stream_served, (void *)handle);
    return true;
}

void impl_mgpuEventDestroy(hipEvent_t handle) {
    struct thread *thread = thread_get();
    if (UNLIKELY(is_stream(handle))) {
        impl_mgpuStreamDestroy((hipStream_t)handle);
        return;
    }
    if (runtime_leaves(handle_find(&event_map, handle)) ||
        !event_usable(handle, "hipEventDestroy(event)"))
        return;
    struct event *event = find_event(handle);
    if (UNLIKELY(!event)) {
        REPORT("hipEventDestroy(event)", hip.EventDestroy(handle), NULL);
        return;
    }
    event->live = false;
    if (LIKELY(thread->event_count < EVENT_SLOTS))
        thread->events[thread->event_count++] = event;
    else
        put_spare(event);
}

static void wait_for(hipEvent_t handle) {
    const struct event *event = find_event(handle);
    struct stream *stream = event ? event->stream : NULL;
    const uint64_t mark = stream ? event->mark : 0; /* before: it may be recorded anew meanwhile */
    const hipError_t error = hip.EventSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure("hipEventSynchronize(event)", error, NULL);
    else if (stream)
        stream_pass(stream, mark);
}

void impl_mgpuEventSynchronize(hipEvent_t handle) {
    struct thread *thread = thread_get();
    if (UNLIKELY(is_stream(handle)))
        stream_synchronize(thread, (hipStream_t)handle, "hipEventSynchronize(event)");
    else if (event_usable(handle, "hipEventSynchronize(event)") && event_recorded(handle))
        wait_for(handle);
}

void impl_mgpuEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
    static const char expression[] = "hipEventRecord(event, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), stream_handle, &stream, expression) ||
        !event_usable(handle, expression))
        return;
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = hip.EventRecord(handle, stream_handle);
    struct event *event = find_event(handle);
    if (UNLIKELY(error != hipSuccess)) {
        report_failure(expression, error, NULL);
    } else if (event) {
        event->recorded = true;
        event->stream = stream;
        event->mark = mark;
    }
    stream_submitted(thread_get(), stream);
}

void impl_mgpuStreamWaitEvent(hipStream_t handle, hipEvent_t event) {
    static const char expression[] = "hipStreamWaitEvent(stream, event, 0)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression) ||
        !event_usable(event, expression) || !event_recorded(event))
        return;
    REPORT(expression, hip.StreamWaitEvent(handle, event, 0), NULL);
    stream_launched(thread_get(), stream); /* it now depends on kernels, perhaps */
}

void event_give_back(struct thread *thread) {
    while (thread->event_count)
        put_spare(thread->events[--thread->event_count]);
}

int event_trim(struct thread *thread) {
    event_give_back(thread);
    pthread_mutex_lock(&tables_lock);
    struct event *event = spare;
    spare = NULL;
    spare_end = &spare;
    pthread_mutex_unlock(&tables_lock);
    int count = 0;
    for (; event; event = event->next_spare, count++) {
        event->gone = true;
        REPORT("hipEventDestroy(event)", hip.EventDestroy((hipEvent_t)event->handle.key), NULL);
    }
    return count;
}

void event_forget_all(void) {
    pthread_mutex_lock(&tables_lock);
    spare = NULL;
    spare_end = &spare;
    for (struct thread *thread = thread_list; thread; thread = thread->next)
        store_relaxed(&thread->event_count, 0);
    for (struct event *event = handle_first(&event_map); event;
         event = (struct event *)event->handle.next)
        event->gone = true;
    pthread_mutex_unlock(&tables_lock);
}
