#include "stream.h"

#include "calls.h"
#include "graph.h"
#include "hipstub.h"
#include "log.h"
#include "memory.h"
#include "mode.h"

#include <stdlib.h>
#include <unistd.h>

static struct ihipStream_t *streams; /* all live and dead streams; the null stream is last */
static unsigned stream_count;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;

/* `again` reuses the handle of a dead stream, if one exists. */
static struct ihipStream_t *stream_new(unsigned flags, bool again) {
    struct ihipStream_t *stream = again ? object_again(STREAM) : NULL;
    if (stream == NULL) {
        stream = object_new(STREAM, sizeof *stream);
        stream->next_stream = streams;
        streams = stream;
    }
    stream->flags = flags;
    stream->pace = stub_pace_of(stream_count++);
    stream->ended = false; /* a reused handle keeps the dead stream's worker, pending operations and
                            * count of operations */
    return stream;
}

hipEvent_t stream_as_event(void) {
    struct ihipStream_t *stream = object_again(STREAM);
    if (stream == NULL)
        return NULL;
    struct ihipStream_t **link = &streams;
    while (*link != stream)
        link = &(*link)->next_stream;
    *link = stream->next_stream;
    return object_turn(&stream->object, EVENT, sizeof(struct ihipEvent_t));
}

static struct ihipStream_t *null_streams[STUB_MOST_DEVICES];

struct ihipStream_t *stream_null(void) {
    struct ihipStream_t **null_stream = &null_streams[current_device()];
    if (*null_stream == NULL) {
        *null_stream = stream_new(0, false);
        object_end(
            &(*null_stream)->object); /* a stream without a handle, which the stub does not count */
    }
    return *null_stream;
}

struct ihipStream_t *stream_of(const char *function, hipStream_t handle) {
    if (handle == NULL)
        return stream_null();
    return object_check(function, STREAM, handle) ? handle : NULL;
}

void operation_wait(struct operation *operation, struct ihipStream_t *stream, uint64_t ticket) {
    if (stream->completed >= ticket)
        return;
    struct wait *wait = malloc(sizeof *wait);
    *wait = (struct wait){stream, ticket, operation->waits};
    operation->waits = wait;
}

/* Returns whether the operation may begin. The comparison of numbers keeps a stream's operations in
 * order even if two callers execute operations. */
static bool may_begin(const struct ihipStream_t *stream, const struct operation *operation) {
    if (stream->completed + 1 != operation->number)
        return false;
    for (const struct wait *wait = operation->waits; wait != NULL; wait = wait->next)
        if (wait->stream->completed < wait->ticket)
            return false;
    return true;
}

static void let_go(struct ihipStream_t *stream, uint64_t ticket) {
    if (ticket <= stream->let_go)
        return;
    stream->let_go = ticket;
    pthread_cond_broadcast(&progress);
}

/* Returns whether the stream still holds the operation back. A thread that waits for an operation
 * also waits for all earlier operations of the stream. */
static bool is_held(const struct ihipStream_t *stream, const struct operation *operation) {
    if (operation->number > stream->let_go)
        return stream->pace.waiters > 0;
    for (const struct wait *wait = operation->waits; wait != NULL; wait = wait->next)
        let_go(wait->stream, wait->ticket);
    return false;
}

void operation_end(struct operation *operation) {
    if (operation->end != NULL)
        operation->end(operation);
    for (struct wait *wait = operation->waits, *next; wait != NULL; wait = next) {
        next = wait->next;
        free(wait);
    }
    free(operation);
}

/* Executes one operation: waits for its conditions and for the delay, then does the work. */
static void perform(struct ihipStream_t *stream, struct operation *operation) {
    while (is_held(stream, operation) || !may_begin(stream, operation))
        pthread_cond_wait(&progress, stub_mutex());
    stub_unlock();
    if (operation->delayed && stream->pace.delay_us > 0)
        usleep((useconds_t)stream->pace.delay_us);
    if (operation->work != NULL)
        operation->work(operation);
    stub_lock();
    stream->completed = operation->number;
    pthread_cond_broadcast(&progress);
    operation_end(operation);
}

static void *run_worker(void *argument) {
    struct ihipStream_t *stream = argument;
    stub_lock();
    for (;;) {
        while (stream->first == NULL) {
            if (stream->ended) {
                stream->has_worker = false;
                stub_unlock();
                return NULL;
            }
            pthread_cond_wait(&progress, stub_mutex());
        }
        struct operation *operation = stream->first;
        stream->first = operation->next;
        if (stream->first == NULL)
            stream->last = NULL;
        perform(stream, operation);
    }
}

uint64_t stream_submit(struct ihipStream_t *stream, struct operation *operation) {
    struct ihipStream_t *null_stream = null_streams[stream->object.device];
    if (stream->capture != NULL) {
        graph_capture(stream, operation);
        return stream->submitted;
    }
    if (stream == null_stream) {
        for (struct ihipStream_t *other = streams; other != NULL; other = other->next_stream)
            if (other != stream && other->object.device == stream->object.device &&
                (other->flags & hipStreamNonBlocking) == 0)
                operation_wait(operation, other, other->submitted);
    } else if (null_stream != NULL && (stream->flags & hipStreamNonBlocking) == 0) {
        operation_wait(operation, null_stream, null_stream->submitted);
    }
    uint64_t ticket = ++stream->submitted;
    operation->number = ticket;
    operation->next = NULL;
    if (stream->pace.delay_us < 0) {
        perform(stream, operation);
        return ticket;
    }
    if (stream->last != NULL)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    if (!stream->has_worker) {
        pthread_t worker;
        if (pthread_create(&worker, NULL, run_worker, stream) != 0)
            abort();
        pthread_detach(worker);
        stream->has_worker = true;
    }
    pthread_cond_broadcast(&progress);
    return ticket;
}

void stream_end_capture(const struct ihipGraph *graph) {
    for (struct ihipStream_t *stream = streams; stream != NULL; stream = stream->next_stream)
        if (stream->capture == graph)
            stream->capture = NULL;
}

bool stream_done(const struct ihipStream_t *stream, uint64_t ticket) {
    return stream->completed >= ticket;
}

void stream_wait(struct ihipStream_t *stream, uint64_t ticket) {
    if (stream->completed >= ticket)
        return;
    if (stream->awaited < ticket)
        stream->awaited = ticket;
    if (++stream->waiters >= stream->pace.waiters)
        let_go(stream, stream->awaited);
    while (stream->completed < ticket)
        pthread_cond_wait(&progress, stub_mutex());
    --stream->waiters;
}

void stream_wait_all(bool blocking_only) {
    for (struct ihipStream_t *stream = streams; stream != NULL; stream = stream->next_stream)
        if (!blocking_only || (stream->flags & hipStreamNonBlocking) == 0)
            stream_wait(stream, stream->submitted);
}

void stream_wait_device(int device) {
    for (struct ihipStream_t *stream = streams; stream != NULL; stream = stream->next_stream)
        if (stream->object.device == device)
            stream_wait(stream, stream->submitted);
}

uint64_t hipstub_pending(void *handle) {
    stub_lock();
    struct ihipStream_t *stream = stream_of("hipstub_pending", handle);
    uint64_t pending = stream == NULL ? 0 : stream->submitted - stream->completed;
    stub_unlock();
    return pending;
}

unsigned hipstub_waiters(void *handle) {
    stub_lock();
    struct ihipStream_t *stream = stream_of("hipstub_waiters", handle);
    const unsigned waiters = stream == NULL ? 0 : stream->waiters;
    stub_unlock();
    return waiters;
}

hipError_t emu_hipStreamCreate(hipStream_t *stream) {
    return emu_hipStreamCreateWithFlags(stream, 0);
}

/* AMD's HIP 7.2.4 returns 0 for a handle that is not a stream. */
hipError_t emu_hipStreamGetFlags(hipStream_t stream, unsigned *flags) {
    const bool known = stream != NULL && object_is(STREAM, stream);
    if (flags == NULL)
        return hipErrorInvalidValue;
    if (stream != NULL && !known && stub_version < HIP_7)
        return hipErrorContextIsDestroyed;
    *flags = known ? stream->flags : 0;
    return hipSuccess;
}

hipError_t emu_hipStreamGetDevice(hipStream_t stream, int *device) {
    if (device == NULL)
        return hipErrorInvalidValue;
    if (stream != NULL && !object_is(STREAM, stream))
        return hipErrorContextIsDestroyed;
    *device = stream == NULL ? current_device() : stream->object.device;
    return hipSuccess;
}

hipError_t emu_hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    if (stream == NULL || flags > hipStreamNonBlocking)
        return hipErrorInvalidValue;
    stream_null(); /* creates the null stream first, so that the null stream gets the first delay of
                      HIPSTUB_ASYNC */
    *stream = stream_new(flags, true);
    return hipSuccess;
}

hipError_t emu_hipStreamDestroy(hipStream_t stream) {
    if (stream == NULL)
        return hipErrorInvalidHandle;
    if (!object_check("hipStreamDestroy", STREAM, stream))
        return hipErrorContextIsDestroyed;
    object_end(&stream->object);
    if (!stub_destroy_returns)
        stream_wait(stream, stream->submitted); /* AMD's HIP waits for the stream too */
    stream->ended = true;
    object_release(&stream->object);
    pthread_cond_broadcast(&progress);
    return hipSuccess;
}

hipError_t emu_hipStreamSynchronize(hipStream_t stream) {
    struct ihipStream_t *found = stream_of("hipStreamSynchronize", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (found->capture != NULL)
        return graph_spoil(found);
    if (stream == NULL)
        stream_wait_all(true);
    else
        stream_wait(found, found->submitted);
    return hipSuccess;
}

struct host_call {
    struct operation operation;
    hipStreamCallback_t callback;
    hipStream_t stream;
    void *data;
};

static void run_callback(struct operation *operation) {
    const struct host_call *call = (struct host_call *)operation;
    call->callback(call->stream, hipSuccess, call->data);
}

hipError_t emu_hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *data,
                                    unsigned flags) {
    struct ihipStream_t *found = stream_of("hipStreamAddCallback", stream);
    if (callback == NULL || flags != 0)
        return hipErrorInvalidValue;
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    struct host_call *call = calloc(1, sizeof *call);
    *call = (struct host_call){{.work = run_callback}, callback, stream, data};
    stream_submit(found, &call->operation);
    return hipSuccess;
}

/* Returns whether a stream's next operation would wait for another stream. */
static bool follows_others(const struct ihipStream_t *stream) {
    const struct ihipStream_t *null_stream = null_streams[stream->object.device];
    if ((stream->flags & hipStreamNonBlocking) != 0)
        return false;
    if (stream != null_stream)
        return null_stream != NULL && null_stream->completed < null_stream->submitted;
    for (const struct ihipStream_t *other = streams; other != NULL; other = other->next_stream)
        if (other != stream && other->object.device == stream->object.device &&
            (other->flags & hipStreamNonBlocking) == 0 && other->completed < other->submitted)
            return true;
    return false;
}

/* Before AMD's HIP answers, it makes the null stream wait for the other streams, or another stream
 * wait for the null stream. Later work then waits too (HIP 5.2.3, 5.7.1, 6.4.3, 7.2.4). */
hipError_t emu_hipStreamQuery(hipStream_t stream) {
    struct ihipStream_t *found = stream_of("hipStreamQuery", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (found->capture != NULL)
        return graph_spoil(found);
    if (follows_others(found))
        stream_submit(found, calloc(1, sizeof(struct operation)));
    if (!stream_done(found, found->submitted))
        return hipErrorNotReady;
    memory_stream_is_idle();
    return hipSuccess;
}
