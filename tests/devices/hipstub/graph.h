/* A graph is a set of operations that each launch repeats. A capturing stream adds its operations
 * to a graph.
 *
 * A launch executes one node at a time, in a random order that the edges permit. If the program
 * forgets an edge, a test finds a wrong byte. Callers of these functions hold the stub's lock. */
#ifndef HIPSTUB_GRAPH_H
#define HIPSTUB_GRAPH_H

#include "objects.h"
#include "stream.h"

/* Creates the operation of a node. Returns an error, such as hipErrorInvalidValue, if HIP would
 * reject the parameters. */
hipError_t launch_operation(const hipKernelNodeParams *params, struct operation **operation);
hipError_t fill_operation(const hipMemsetParams *params, struct operation **operation);
hipError_t copy_operation(void *to, const void *from, size_t bytes, struct operation **operation);

/* Appends an operation to a stream's capture. */
void graph_capture(struct ihipStream_t *stream, struct operation *operation);

/* Lets a stream wait for a captured event. The stream joins the capture. */
hipError_t graph_capture_wait(struct ihipStream_t *stream, struct ihipEvent_t *event);

/* Invalidates the capture of a stream, after a call that is not permitted on a capturing stream. */
hipError_t graph_spoil(struct ihipStream_t *stream);

/* Returns true if an active capture forbids the calling thread to wait or to allocate memory.
 * Invalidates every capture that forbids these calls. */
bool graph_forbids(void);

#endif
