#include "telemetry/recording/gpu_times.h"
#include "atomics.h"
#include "driver/device.h"
#include "driver/hip.h"
#include "mgpu.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "streams/streams.h"
#include "telemetry/counters.h"
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

#include <pthread.h>
#include <sched.h>

/* A float holds the milliseconds between two events, which is exact to some ns for short times. */
enum { RING = 1024, NEW_REFERENCE = 64000000 /* ns */ };

/* `patience` is the longest wait for a device's first event, and `respite` is the pause before the
 * next attempt, both in ns. Without the limit, the program and a stream could wait for each other
 * for ever. */
static const uint64_t patience = 1000000000, respite = 60 * UINT64_C(1000000000);

/* A piece of submitted work, with the event before the work and the event after the work. Only the
 * thread that has changed the state to TAKEN owns the work. The owner calls HIP without a lock,
 * because HIP may wait for space in a stream's queue. */
enum state { FREE, TAKEN, SUBMITTED };
struct work {
    int state;
    int device;          /* the events' */
    unsigned generation; /* the value of generations[device] when the events were created */
    hipEvent_t begin, end;
    uint16_t function, kernel, stream;
    uint64_t bytes;
};

/* An event whose time on the host's clock is known. */
struct reference {
    hipEvent_t event;
    uint64_t time;
    bool sought; /* a thread is determining the reference */
    uint64_t not_before;
};

static struct work ring[RING];
static size_t next; /* the place that was used least recently */

/* Guards the two arrays below. A thread that holds this lock calls HIP only to get the time between
 * two completed events. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reference references[MOST_DEVICES];
static unsigned generations[MOST_DEVICES]; /* increases when HIP has invalidated the events */

/* Returns whether a call of HIP succeeded. Does not clear hipErrorNotReady from the last error,
 * because the program's call to HIP follows and replaces the last error. */
static bool works(hipError_t error) {
    if (error != hipSuccess && error != hipErrorNotReady)
        PROOF_STEP(timing_leaves_no_error, device_clear_error(error));
    return error == hipSuccess;
}

static void note_lost(void) {
    if (trace_on())
        fetch_add_relaxed(&trace_now->gpu_lost, 1);
}

/* ---- events ---- */

static void destroy_event(hipEvent_t *event) {
    if (*event)
        (void)works(hip_untimed.EventDestroy(*event));
    *event = NULL;
}

static bool have_event(hipEvent_t *event) {
    if (*event || works(hip_untimed.EventCreateWithFlags(event, hipEventDefault)))
        return true;
    *event = NULL;
    return false;
}

static bool is_invalid(const struct work *work) {
    return work->generation != load_acquire(&generations[work->device]);
}

/* An event can be recorded only on streams of its own device. */
static bool have_both(struct work *work, int device) {
    if (is_invalid(work))
        work->begin = work->end = NULL;
    if (DOUBT(events_are_of_another_device, work->device != device)) {
        destroy_event(&work->begin);
        destroy_event(&work->end);
    }
    work->device = device;
    work->generation = load_acquire(&generations[device]);
    return have_event(&work->begin) && have_event(&work->end);
}

/* ---- the first event of a device ---- */

/* Records an event, waits until HIP reports the event as complete, and stores the time of that
 * report in *time. Returns false if the event is not complete after `patience`. */
static bool record_and_see(hipEvent_t event, hipStream_t stream, uint64_t *time) {
    const uint64_t end = clock_ns() + patience;
    if (!works(hip_untimed.EventRecord(event, stream)))
        return false;
    hipError_t error;
    while ((error = hip_untimed.EventQuery(event)) == hipErrorNotReady &&
           PROOF(stream_waits_for_no_program, clock_ns() < end))
        sched_yield();
    *time = clock_ns();
    return works(error);
}

/* Records an event twice, and keeps the time of the second record. The first record waits for the
 * stream's earlier work, so the second record completes almost at once. Without the first record, a
 * kernel could seem to start before its launch. */
static bool find_reference(struct reference *reference, int device, hipStream_t stream) {
    const unsigned generation = load_acquire(&generations[device]);
    hipEvent_t event = NULL;
    uint64_t time;
    register_exit();
    device_watch(device);
    if (!have_event(&event))
        return false;
    if (!record_and_see(event, stream, &time) || !record_and_see(event, stream, &time)) {
        destroy_event(&event);
        return false;
    }
    pthread_mutex_lock(&lock);
    const bool kept = generation == generations[device];
    if (kept) {
        reference->time = time;
        store_release(&reference->event, event);
    }
    pthread_mutex_unlock(&lock);
    return kept;
}

/* Returns true if the device has a reference, or if another thread is determining the reference. */
static bool have_reference(int device, hipStream_t stream) {
    struct reference *reference = &references[device];
    if (load_acquire(&reference->event) || exchange_acq_rel(&reference->sought, true))
        return true;
    bool found = load_acquire(&reference->event) != NULL;
    if (!found && clock_ns() >= reference->not_before) {
        found = find_reference(reference, device, stream);
        reference->not_before = clock_ns() + respite;
    }
    store_release(&reference->sought, false);
    return found;
}

/* ---- times ---- */

/* Finds the event's time on the host's clock. Returns false if HIP does not report the time. */
static bool time_of(hipEvent_t event, const struct reference *reference, uint64_t *time) {
    float milliseconds = 0;
    if (!reference->event ||
        !works(hip_untimed.EventElapsedTime(&milliseconds, reference->event, event)))
        return false;
    *time = reference->time + (uint64_t)(int64_t)((double)milliseconds * 1e6);
    return true;
}

static void move_reference(struct reference *reference, struct work *work, uint64_t end) {
    const hipEvent_t last = reference->event;
    store_release(&reference->event, work->end);
    reference->time = end;
    work->end = last;
}

static bool read_times(struct work *work, uint64_t *begin, uint64_t *end) {
    struct reference *reference = &references[work->device];
    pthread_mutex_lock(&lock);
    const bool known = !is_invalid(work) && time_of(work->begin, reference, begin) &&
                       time_of(work->end, reference, end) && *end >= *begin;
    if (known && *end > reference->time + NEW_REFERENCE)
        move_reference(reference, work, *end);
    pthread_mutex_unlock(&lock);
    return known;
}

static void record_times(struct work *work) {
    uint64_t begin, end;
    if (!trace_on() || !read_times(work, &begin, &end)) {
        note_lost();
        return;
    }
    trace_add(&(struct trace_event){.kind = TRACE_GPU,
                                    .function = work->function,
                                    .begin = begin,
                                    .nanoseconds = end - begin,
                                    .bytes = work->bytes,
                                    .kernel = work->kernel,
                                    .stream = work->stream});
}

/* Returns false if the work still runs. Otherwise records the times of the work, or counts the work
 * as lost, and returns true. Calls hipEventElapsedTime to find out whether the work is done. In HIP
 * 6.4.3 and 7.2.4, hipEventQuery would read the stream on which the event was recorded, and that
 * stream may be destroyed. */
static bool is_read(struct work *work) {
    if (is_invalid(work)) {
        note_lost();
        return true;
    }
    float milliseconds;
    const hipError_t error = hip_untimed.EventElapsedTime(&milliseconds, work->begin, work->end);
    if (DOUBT(timed_work_goes_on, error == hipErrorNotReady))
        return false;
    if (works(error))
        record_times(work);
    else
        note_lost();
    return true;
}

/* Takes a place, and stores its previous state in *before. Returns false if another thread has
 * taken the place. */
static bool take_work(struct work *work, int *before) {
    *before = load_acquire(&work->state);
    return *before != TAKEN && cas_acq_rel(&work->state, before, TAKEN);
}

static void leave_work(struct work *work, enum state state) {
    store_release(&work->state, (int)state);
}

/* ---- around a submission ---- */

/* Asks HIP whether the stream exists, because HIP ends a process that records an event on a
 * destroyed stream. */
static bool is_timeable(hipStream_t stream) {
    unsigned flags;
    return !stream || stream_ask_flags(&hip_untimed, stream, &flags);
}

/* Returns the ring's next place for work. Returns NULL if the oldest work is still running; the
 * next submission uses the next place. Therefore one slow stream does not block the other streams.
 */
static struct work *next_place(void) {
    const size_t place =
        PROOF_VALUE(slow_stream_holds_one_place, fetch_add_relaxed(&next, 1), load_relaxed(&next));
    struct work *work = &ring[place % RING];
    int state;
    if (!take_work(work, &state))
        return NULL;
    if (state == FREE || is_read(work))
        return work;
    leave_work(work, SUBMITTED);
    return NULL;
}

/* Returns a place for the work, after recording the place's first event; NULL if the work cannot be
 * timed. */
static struct work *begin_work(int device, hipStream_t stream) {
    struct work *work = next_place();
    if (!work)
        return NULL;
    if (device < MOST_DEVICES && PROOF(hip_has_the_timed_stream, is_timeable(stream)) &&
        have_reference(device, stream) && have_both(work, device) &&
        works(hip_untimed.EventRecord(work->begin, stream)))
        return work;
    leave_work(work, FREE);
    return NULL;
}

struct work *gpu_times_before(enum hip_index function, hipStream_t stream, size_t kernel,
                              uint64_t bytes) {
    if (DOUBT(timing_events_are_the_parents, runtime_forked) || runtime_exiting())
        return NULL;
    const int device = hip_current_device();
    PROOF_STEP(reset_before_timing, (void)device_kept(device)); /* a reset invalidates the events */
    struct work *work = begin_work(device, stream);
    if (work) {
        work->function = (uint16_t)function;
        work->kernel = (uint16_t)kernel;
        work->stream = recorder_stream(stream);
        work->bytes = bytes;
    } else {
        note_lost();
    }
    return work;
}

/* If HIP has refused the call, there is nothing to time. In HIP 6 and older, recording an event
 * would also clear the call's last error. */
hipError_t gpu_times_after(struct work *work, hipStream_t stream, hipError_t error) {
    if (!work)
        return error;
    const bool is_timed = PROOF(timed_work_was_submitted, error == hipSuccess) &&
                          !is_invalid(work) && works(hip_untimed.EventRecord(work->end, stream));
    leave_work(work, is_timed ? SUBMITTED : FREE);
    if (error == hipSuccess && !is_timed)
        note_lost();
    return error;
}

/* ---- the end of it ---- */

/* Work that another thread is about to submit belongs to that thread. */
static void close_work(struct work *work) {
    int state;
    if (!take_work(work, &state)) {
        note_lost();
        return;
    }
    if (state == SUBMITTED && !is_read(work))
        note_lost();
    if (!is_invalid(work)) {
        destroy_event(&work->begin);
        destroy_event(&work->end);
    }
    leave_work(work, FREE);
}

void gpu_times_close(void) {
    if (runtime_forked)
        return; /* the events and HIP belong to the parent process */
    const size_t oldest = load_relaxed(&next);
    for (size_t i = 0; i < RING; i++)
        close_work(&ring[(oldest + i) % RING]);
    for (size_t device = 0; device < MOST_DEVICES; device++) {
        pthread_mutex_lock(&lock);
        hipEvent_t event = references[device].event;
        store_release(&references[device].event, NULL);
        pthread_mutex_unlock(&lock);
        destroy_event(&event);
    }
}

static void invalidate_work(struct work *work, int which) {
    int state;
    if (!take_work(work, &state))
        return; /* the thread that has taken the work will find the events invalid */
    const bool is_gone = state == SUBMITTED && of_device(which, work->device);
    if (is_gone)
        note_lost();
    leave_work(work, is_gone ? FREE : (enum state)state);
}

/* Invalidates the events, because a device was reset or HIP ends. */
static void invalidate_gpu_times(int which) {
    if (runtime_forked)
        return;
    pthread_mutex_lock(&lock);
    for (int device = 0; device < MOST_DEVICES; device++)
        if (DOUBT(reset_ends_timing_events, of_device(which, device))) {
            store_release(&references[device].event, NULL);
            references[device].not_before = 0;
            fetch_add_release(&generations[device], 1);
        }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < RING; i++)
        invalidate_work(&ring[i], which);
}

const struct cache gpu_times_cache = {.name = "GPU times", .invalidate = invalidate_gpu_times};
