#include "recording/gpu_times.h"
#include "base/abi.h"
#include "base/atomics.h"
#include "base/counters.h"
#include "base/state.h"
#include "base/trace.h"
#include "cache/streams.h"
#include "hip/device.h"
#include "hip/hip.h"
#include "hip/hip_open.h"
#include "recording/recorder.h"

#include <pthread.h>

/* A float holds the milliseconds between two events: to some ns as long as they are few. */
enum { RING = 1024, NEW_REFERENCE = 64000000 /* ns */ };

/* What was submitted, between its events. */
struct work {
    enum { FREE, BEGUN, SUBMITTED } state;
    int device; /* the events' */
    hipEvent_t begin, end;
    uint16_t function, kernel, stream;
    uint64_t bytes;
};

/* An event whose time on the host's clock is known. */
struct reference {
    hipEvent_t event;
    uint64_t time;
};

/* Guards all below. HIP is called under it, which calls nothing of this library's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct work ring[RING];
static size_t next; /* the place in it that was taken least recently */
static struct reference references[MEMORY_DEVICES];

/* "Not ready" stays the last error for a moment only: the program's own call follows. */
static bool works(hipError_t error) {
    if (error != hipSuccess && error != hipErrorNotReady)
        device_forget_error(error);
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

/* An event is recorded on streams of the device on which it was made. */
static bool have_both(struct work *work, int device) {
    if (work->device != device) {
        destroy_event(&work->begin);
        destroy_event(&work->end);
    }
    work->device = device;
    return have_event(&work->begin) && have_event(&work->end);
}

static bool record_and_wait(struct reference *reference, hipStream_t stream) {
    const bool done = works(hip_untimed.EventRecord(reference->event, stream)) &&
                      works(hip_untimed.EventSynchronize(reference->event));
    reference->time = stats_now();
    return done;
}

/* Waits twice, once for good: for what the stream has to do and for HIP to set up what it waits by
 * (2.5 ms with 6.4.3), then for next to nothing. The time is that at which the host knew of the
 * end, so that no kernel seems to begin before it was launched. */
static bool have_reference(int device, hipStream_t stream) {
    struct reference *reference = &references[device];
    if (reference->event)
        return true;
    hooks.register_exit();
    device_watch(device);
    if (!have_event(&reference->event))
        return false;
    if (record_and_wait(reference, stream) && record_and_wait(reference, stream))
        return true;
    destroy_event(&reference->event);
    return false;
}

/* ---- times ---- */

/* On the host's clock. False if HIP does not say. */
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
    reference->event = work->end;
    reference->time = end;
    work->end = last;
}

static void keep_times(struct work *work) {
    struct reference *reference = &references[work->device];
    uint64_t begin, end;
    if (!trace_on() || !time_of(work->begin, reference, &begin) ||
        !time_of(work->end, reference, &end) || end < begin) {
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
    if (end > reference->time + NEW_REFERENCE)
        move_reference(reference, work, end);
}

/* True if the place is free: what was there is done, and its times were read. */
static bool is_read(struct work *work) {
    if (work->state != SUBMITTED)
        return work->state == FREE;
    const hipError_t error = hip_untimed.EventQuery(work->end);
    if (error == hipErrorNotReady)
        return false;
    if (works(error))
        keep_times(work);
    else
        note_lost();
    work->state = FREE;
    return true;
}

/* ---- around a submission ---- */

/* HIP's own word: it ends a process that records an event on a stream which it has destroyed. */
static bool is_timeable(hipStream_t stream) {
    unsigned flags;
    return !stream || stream_ask_flags_by(&hip_untimed, stream, &flags);
}

/* A place whose first event is on its way; NULL if the work cannot be timed. Where the oldest is at
 * work still, the next submission has the next place: one slow stream does not keep out others. */
static struct work *begin_work(int device, hipStream_t stream) {
    struct work *work = &ring[next];
    next = (next + 1) % RING;
    if (!is_read(work) || device >= MEMORY_DEVICES || !is_timeable(stream) ||
        !have_reference(device, stream) || !have_both(work, device) ||
        !works(hip_untimed.EventRecord(work->begin, stream)))
        return NULL;
    work->state = BEGUN;
    return work;
}

/* kernel: its row; of a copy or a fill TRACE_NO_KERNEL, and its bytes. */
static struct work *before(enum hip_index function, hipStream_t stream, size_t kernel,
                           uint64_t bytes) {
    if (runtime_forked || runtime_exiting())
        return NULL;
    const int device = hip_current_device();
    (void)device_kept(device); /* else the events are forgotten */
    pthread_mutex_lock(&lock);
    struct work *work = begin_work(device, stream);
    if (work) {
        work->function = (uint16_t)function;
        work->kernel = (uint16_t)kernel;
        work->stream = recorder_stream(stream);
        work->bytes = bytes;
    } else {
        note_lost();
    }
    pthread_mutex_unlock(&lock);
    return work;
}

/* What HIP has refused has no times, and up to HIP 6 its error is the last one. */
static hipError_t after(struct work *work, hipStream_t stream, hipError_t error) {
    if (!work)
        return error;
    pthread_mutex_lock(&lock);
    const bool is_timed = error == hipSuccess && work->end && /* not forgotten meanwhile */
                          works(hip_untimed.EventRecord(work->end, stream));
    work->state = is_timed ? SUBMITTED : FREE;
    if (error == hipSuccess && !is_timed)
        note_lost();
    pthread_mutex_unlock(&lock);
    return error;
}

static struct hip_functions submit; /* as they were before */

#define SUBMISSION(name, params, args, kernel, bytes)                                              \
    static hipError_t gpu_##name params {                                                          \
        struct work *work = before(HIP_##name, stream, kernel, bytes);                             \
        return after(work, stream, submit.name args);                                              \
    }
#include "recording/gpu_times.def"
#undef SUBMISSION

/* ---- the life of it ---- */

void gpu_times_open(void) {
    submit = hip;
/* What HIP lacks submits nothing, and leaves the last error alone. */
#define SUBMISSION(name, params, args, kernel, bytes)                                              \
    if (hip_untimed.name != hip_missing.name)                                                      \
        hip.name = gpu_##name;
#include "recording/gpu_times.def"
#undef SUBMISSION
}

void gpu_times_close(void) {
    if (runtime_forked)
        return; /* the events are the parent's, as HIP is */
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < RING; i++) { /* the oldest first */
        struct work *work = &ring[(next + i) % RING];
        if (!is_read(work))
            note_lost();
        work->state = FREE;
        destroy_event(&work->begin);
        destroy_event(&work->end);
    }
    for (size_t device = 0; device < MEMORY_DEVICES; device++)
        destroy_event(&references[device].event);
    pthread_mutex_unlock(&lock);
}

void gpu_times_forget(int which) {
    if (runtime_forked)
        return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < RING; i++) {
        struct work *work = &ring[i];
        if (!of_device(which, work->device))
            continue;
        if (work->state == SUBMITTED) {
            note_lost();
            work->state = FREE;
        }
        work->begin = work->end = NULL;
    }
    for (int device = 0; device < MEMORY_DEVICES; device++)
        if (of_device(which, device))
            references[device].event = NULL;
    pthread_mutex_unlock(&lock);
}
