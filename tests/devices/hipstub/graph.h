/* Graphs: operations that are done again at each launch, and streams that capture them.
 *
 * The nodes of a launch are done one by one, in another order each time that their edges allow: an
 * edge that is missing shows as a wrong byte. Everything here needs the stub's lock. */
#ifndef HIPSTUB_GRAPH_H
#define HIPSTUB_GRAPH_H

#include "objects.h"
#include "stream.h"

/* Makes what a node does; hipErrorInvalidValue and the like for what no node can be. */
hipError_t launch_operation(const hipKernelNodeParams *params, struct operation **operation);
hipError_t fill_operation(const hipMemsetParams *params, struct operation **operation);
hipError_t copy_operation(void *to, const void *from, size_t bytes, struct operation **operation);

/* Adds an operation to what a stream captures, after all that it has captured. */
void graph_capture(struct ihipStream_t *stream, struct operation *operation);

/* Captures an event's record on a stream that captures, or a wait for it. A stream that waits for
 * it captures too, from then on. */
void graph_capture_event(struct ihipEvent_t *event, struct ihipStream_t *stream);
hipError_t graph_capture_wait(struct ihipStream_t *stream, struct ihipEvent_t *event);

/* Ends the capture of a stream, for a call that no stream may have that captures. */
hipError_t graph_spoil(struct ihipStream_t *stream);

/* Returns whether a call that may wait or allocate is forbidden to the calling thread, as somebody
 * captures in a mode that forbids it: the captures are over then. */
bool graph_forbids(void);

#endif
