/* Graphs: operations that each launch repeats, and streams that capture them.
 *
 * Each launch runs the nodes one by one, in another order that their edges permit: a missing edge
 * shows as a wrong byte. All functions here need the stub's lock. */
#ifndef HIPSTUB_GRAPH_H
#define HIPSTUB_GRAPH_H

#include "objects.h"
#include "stream.h"

/* Makes a node's operation; returns hipErrorInvalidValue and the like for operations that no node
 * can have. */
hipError_t launch_operation(const hipKernelNodeParams *params, struct operation **operation);
hipError_t fill_operation(const hipMemsetParams *params, struct operation **operation);
hipError_t copy_operation(void *to, const void *from, size_t bytes, struct operation **operation);

/* Adds an operation to a stream's capture, after all captured ones. */
void graph_capture(struct ihipStream_t *stream, struct operation *operation);

/* Captures an event's record on a stream that captures, or a wait for it. A stream that waits for
 * the event captures too, from then on. */
void graph_capture_event(struct ihipEvent_t *event, struct ihipStream_t *stream);
hipError_t graph_capture_wait(struct ihipStream_t *stream, struct ihipEvent_t *event);

/* Ends the capture of a stream, for a call that no capturing stream may get. */
hipError_t graph_spoil(struct ihipStream_t *stream);

/* Returns whether the calling thread may not wait or allocate, because a capture's mode forbids it;
 * ends those captures. */
bool graph_forbids(void);

#endif
