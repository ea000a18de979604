/* Graphs: operations that each launch repeats, and streams that capture operations.
 *
 * Each launch runs the nodes one by one, in a random order that the edges permit, so a missing edge
 * results in a wrong byte. Callers of these functions hold the stub's lock. */
#ifndef HIPSTUB_GRAPH_H
#define HIPSTUB_GRAPH_H

#include "objects.h"
#include "stream.h"

/* Creates the operation of a node; returns an error such as hipErrorInvalidValue if no node may
 * contain the operation. */
hipError_t launch_operation(const hipKernelNodeParams *params, struct operation **operation);
hipError_t fill_operation(const hipMemsetParams *params, struct operation **operation);
hipError_t copy_operation(void *to, const void *from, size_t bytes, struct operation **operation);

/* Appends an operation to a stream's capture. */
void graph_capture(struct ihipStream_t *stream, struct operation *operation);

/* Captures the recording of an event on a capturing stream, or the wait of a stream for a captured
 * event. A stream that waits for a captured event joins the capture. */
void graph_capture_event(struct ihipEvent_t *event, struct ihipStream_t *stream);
hipError_t graph_capture_wait(struct ihipStream_t *stream, struct ihipEvent_t *event);

/* Invalidates the capture of a stream, after a call that is not permitted on a capturing stream. */
hipError_t graph_spoil(struct ihipStream_t *stream);

/* Returns true if the mode of any active capture forbids the calling thread to wait or allocate,
 * and invalidates each such capture. */
bool graph_forbids(void);

#endif
