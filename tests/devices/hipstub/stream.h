/* Streams as queues of operations. The calling thread executes an operation at once. If
 * HIPSTUB_ASYNC is set, the stream's own thread executes the operation later. Callers hold the
 * stub's lock; functions may release the lock while an operation runs or while they wait for an
 * operation. */
#ifndef HIPSTUB_STREAM_H
#define HIPSTUB_STREAM_H

#include "objects.h"

struct operation {
    /* Executes the operation, without the lock. NULL: the operation does nothing, and only keeps
     * its place in the order. A graph's operations run at each launch. */
    void (*work)(struct operation *operation);
    /* Frees the operation's data, once and with the lock. NULL: nothing to free. */
    void (*end)(struct operation *operation);
    bool delayed; /* whether the stream's delay applies */
    struct wait {
        struct ihipStream_t *stream;
        uint64_t ticket;
        struct wait *next;
    } *waits;
    uint64_t number;
    struct operation *next;
};

/* Returns the null stream of the current device. */
struct ihipStream_t *stream_null(void);

/* Returns a new event with the handle of a dead stream (HIPSTUB_REUSE=2). Returns NULL if no stream
 * is dead. */
hipEvent_t stream_as_event(void);

/* Returns the live stream of a handle, or the null stream for NULL. For any other handle, counts a
 * misuse and returns NULL. */
struct ihipStream_t *stream_of(const char *function, hipStream_t handle);

/* Makes the operation wait until the stream has completed all operations up to the ticket. */
void operation_wait(struct operation *operation, struct ihipStream_t *stream, uint64_t ticket);

/* Submits an operation, which malloc allocated, to a stream. The stream frees the operation after
 * the execution. A capturing stream adds the operation to its graph instead of executing the
 * operation. Orders the operation with the null stream's operations, if the stream lacks the flag
 * hipStreamNonBlocking. Returns the operation's ticket. */
uint64_t stream_submit(struct ihipStream_t *stream, struct operation *operation);

/* Frees an operation that was not submitted to a stream. */
void operation_end(struct operation *operation);

/* Ends the capture of every stream that captures into this graph. */
void stream_end_capture(const struct ihipGraph *graph);

bool stream_done(const struct ihipStream_t *stream, uint64_t ticket);

/* Waits until the stream has completed the operation with this ticket. */
void stream_wait(struct ihipStream_t *stream, uint64_t ticket);

/* Waits until all streams are idle. If `blocking_only` is true, waits only for streams that block
 * with the null stream. */
void stream_wait_all(bool blocking_only);

/* Waits until all streams of a device are idle. */
void stream_wait_device(int device);

#endif
