/* Streams as queues of operations, executed by the caller at once or, with HIPSTUB_ASYNC, late and
 * by the stream's own thread. All functions need the stub's lock and may release it while an
 * operation works or is waited for. */
#ifndef HIPSTUB_STREAM_H
#define HIPSTUB_STREAM_H

#include "objects.h"

struct operation {
    void (*work)(struct operation *operation); /* called without the lock; NULL: it only has a place
                                                  in the order. A graph's runs once a launch */
    void (*end)(struct operation
                    *operation); /* called with the lock, once; NULL: there is nothing to end */
    bool delayed;                /* whether the stream's delay applies */
    struct wait {
        struct ihipStream_t *stream;
        uint64_t ticket;
        struct wait *next;
    } *waits;
    uint64_t number;
    struct operation *next;
};

/* Returns the stream that NULL stands for on the current device. */
struct ihipStream_t *stream_null(void);

/* Returns, with HIPSTUB_REUSE=2, a dead stream's handle as a new event; NULL if there is none. */
hipEvent_t stream_as_event(void);

/* Returns the stream of a handle, or NULL after counting a misuse if it is not a live one. */
struct ihipStream_t *stream_of(const char *function, hipStream_t handle);

/* Lets the operation begin only after that stream has done so many operations. */
void operation_wait(struct operation *operation, struct ihipStream_t *stream, uint64_t ticket);

/* Passes an operation, from malloc, to a stream, which frees it when it is done, or to the graph
 * that the stream captures. Orders the work against the null stream as HIP does for streams without
 * hipStreamNonBlocking. Returns its ticket. */
uint64_t stream_submit(struct ihipStream_t *stream, struct operation *operation);

/* Ends an operation that no stream has. */
void operation_end(struct operation *operation);

/* Ends the captures of all streams into a graph. */
void stream_end_capture(const struct ihipGraph *graph);

bool stream_done(const struct ihipStream_t *stream, uint64_t ticket);

/* Waits until the stream has done so many operations. */
void stream_wait(struct ihipStream_t *stream, uint64_t ticket);

/* Waits until all streams, or those that block with the null stream, have done all their
 * operations. */
void stream_wait_all(bool blocking_only);

#endif
