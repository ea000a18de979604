/* Streams as queues of operations, done by the caller at once or, with HIPSTUB_ASYNC, late and by a
 * thread of the stream's own. Everything here needs the stub's lock and may let go of it while
 * an operation's work is done or waited for. */
#ifndef HIPSTUB_STREAM_H
#define HIPSTUB_STREAM_H

#include "objects.h"

struct operation {
    void (*work)(struct operation *operation); /* without the lock; NULL: nothing but the order. A
                                                  graph's is done once a launch */
    void (*end)(struct operation *operation);  /* with the lock, once; NULL: nothing to end */
    bool delayed;                              /* whether the stream's delay applies */
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

/* Lets the operation begin only after that stream has done that many operations. */
void operation_wait(struct operation *operation, struct ihipStream_t *stream, uint64_t ticket);

/* Hands an operation, from malloc, to a stream, which frees it when it is done, or to the graph
 * that the stream captures. Orders it against the null stream as HIP does for streams without
 * hipStreamNonBlocking. Answers its ticket. */
uint64_t stream_submit(struct ihipStream_t *stream, struct operation *operation);

/* Ends an operation that no stream has, or has any more. */
void operation_end(struct operation *operation);

/* Ends the captures of all streams into a graph. */
void stream_end_capture(const struct ihipGraph *graph);

bool stream_done(const struct ihipStream_t *stream, uint64_t ticket);

/* Waits until the stream has done that many operations. */
void stream_wait(struct ihipStream_t *stream, uint64_t ticket);

/* Waits until all streams, or those that block with the null stream, have done all they have. */
void stream_wait_all(bool blocking_only);

#endif
