/* Streams as queues of operations. The calling thread executes an operation at once; with
 * HIPSTUB_ASYNC, the stream's own thread executes the operation late. Callers hold the stub's lock;
 * functions may release the lock while an operation runs or while they wait for an operation. */
#ifndef HIPSTUB_STREAM_H
#define HIPSTUB_STREAM_H

#include "objects.h"

struct operation {
    void (*work)(struct operation *operation); /* called without the lock; NULL: the operation only
                                                * occupies a place in the order. A graph's
                                                * operations run at each launch */
    void (*end)(struct operation *operation); /* called once with the lock; NULL: nothing to free */
    bool delayed;                             /* whether the stream's delay applies */
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

/* Returns a new event that reuses the handle of a dead stream (HIPSTUB_REUSE=2), or NULL if no
 * stream is dead. */
hipEvent_t stream_as_event(void);

/* Returns the live stream of a handle; otherwise counts a misuse and returns NULL. */
struct ihipStream_t *stream_of(const char *function, hipStream_t handle);

/* Delays the operation until the given stream has completed the operation with this ticket. */
void operation_wait(struct operation *operation, struct ihipStream_t *stream, uint64_t ticket);

/* Submits to a stream an operation that malloc allocated; the stream frees the operation after
 * execution. A capturing stream passes the operation to its graph instead. Orders the operation
 * against the null stream, as HIP does for streams without hipStreamNonBlocking. Returns the
 * operation's ticket. */
uint64_t stream_submit(struct ihipStream_t *stream, struct operation *operation);

/* Frees an operation that was not submitted to a stream. */
void operation_end(struct operation *operation);

/* Ends, on all streams, the captures into this graph. */
void stream_end_capture(const struct ihipGraph *graph);

bool stream_done(const struct ihipStream_t *stream, uint64_t ticket);

/* Waits until the stream has completed the operation with this ticket. */
void stream_wait(struct ihipStream_t *stream, uint64_t ticket);

/* Waits until all streams, or only those that block with the null stream, are idle. */
void stream_wait_all(bool blocking_only);

#endif
