#include "calls.h"
#include "graph.h"
#include "log.h"
#include "mode.h"
#include "stream.h"

#include <stdlib.h>
#include <time.h>

struct mark {
    struct operation operation;
    struct ihipEvent_t *event;
    struct ihipStream_t *stream;
};

/* Stores the time in the event. Does nothing if the event's last record is no longer this
 * operation. */
static void note_time(struct operation *operation) {
    struct mark *mark = (struct mark *)operation;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    stub_lock();
    if (mark->event->stream == mark->stream && mark->event->ticket == operation->number)
        mark->event->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    stub_unlock();
}

static bool event_done(const struct ihipEvent_t *event) {
    return event->stream == NULL || stream_done(event->stream, event->ticket);
}

hipError_t emu_hipEventCreate(hipEvent_t *event) {
    return emu_hipEventCreateWithFlags(event, 0);
}

hipError_t emu_hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    /* 4: interprocess; the last two: hipEventReleaseToDevice, hipEventReleaseToSystem */
    const unsigned known =
        hipEventBlockingSync | hipEventDisableTiming | 4u | 0x40000000u | 0x80000000u;
    if (event == NULL || (flags & ~known) != 0)
        return hipErrorInvalidValue;
    *event = object_again(EVENT);
    if (*event == NULL && stub_reuse_other_kinds)
        *event = stream_as_event();
    if (*event == NULL)
        *event = object_new(EVENT, sizeof **event);
    (*event)->flags = flags;
    (*event)->stream = NULL;
    (*event)->capture = NULL;
    return hipSuccess;
}

hipError_t emu_hipEventDestroy(hipEvent_t event) {
    if (!object_check("hipEventDestroy", EVENT, event))
        return hipErrorInvalidHandle;
    object_kill(&event->object);
    return hipSuccess;
}

hipError_t emu_hipEventRecord(hipEvent_t event, hipStream_t stream) {
    if (!object_check("hipEventRecord", EVENT, event))
        return hipErrorInvalidHandle;
    struct ihipStream_t *found = stream_of("hipEventRecord", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (stream != NULL && event->object.device != found->object.device)
        return hipErrorInvalidHandle; /* as AMD's */
    if (found->capture != NULL) {
        event->capture = found->capture;
        return hipSuccess;
    }
    event->capture = NULL;
    struct mark *mark = calloc(1, sizeof *mark);
    *mark = (struct mark){{.work = note_time}, event, found};
    event->stream = found;
    /* Sets the ticket before stream_submit, because stream_submit may execute the operation at
     * once. */
    event->ticket = found->submitted + 1;
    stream_submit(found, &mark->operation);
    return hipSuccess;
}

hipError_t emu_hipEventSynchronize(hipEvent_t event) {
    if (!object_check("hipEventSynchronize", EVENT, event))
        return hipErrorInvalidHandle;
    if (event->capture != NULL)
        return hipErrorCapturedEvent;
    if (event->stream != NULL)
        stream_wait(event->stream, event->ticket);
    return hipSuccess;
}

hipError_t emu_hipEventQuery(hipEvent_t event) {
    if (!object_check("hipEventQuery", EVENT, event))
        return hipErrorInvalidHandle;
    if (event->capture != NULL)
        return hipErrorCapturedEvent;
    return event_done(event) ? hipSuccess : hipErrorNotReady;
}

hipError_t emu_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
    if (!object_check("hipStreamWaitEvent", EVENT, event))
        return hipErrorInvalidHandle;
    struct ihipStream_t *found = stream_of("hipStreamWaitEvent", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (flags != 0)
        return hipErrorInvalidValue;
    if (event->capture != NULL || found->capture != NULL)
        return graph_capture_wait(found, event);
    if (event_done(event))
        return hipSuccess;
    struct operation *operation = calloc(1, sizeof *operation);
    operation_wait(operation, event->stream, event->ticket);
    stream_submit(found, operation);
    return hipSuccess;
}

hipError_t emu_hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
    if (milliseconds == NULL)
        return hipErrorInvalidValue;
    if (!object_check("hipEventElapsedTime", EVENT, start) ||
        !object_check("hipEventElapsedTime", EVENT, stop))
        return hipErrorInvalidHandle;
    if (((start->flags | stop->flags) & hipEventDisableTiming) != 0 || start->stream == NULL ||
        stop->stream == NULL)
        return hipErrorInvalidHandle;
    if (!event_done(start) || !event_done(stop))
        return hipErrorNotReady;
    *milliseconds = (float)((double)(int64_t)(stop->time_ns - start->time_ns) / 1e6);
    return hipSuccess;
}
