/* The calls of a thread while it builds a graph: they become nodes and edges of it, or end the
 * building. */
#ifndef MGPU_RT_GRAPH_CALLS_H
#define MGPU_RT_GRAPH_CALLS_H

#include "mgpu.h"
#include "mgpu_rt.h"

/* NULL: its implementation, as ever. */
mgpu_rt_function graph_call(enum abi_index function);

#endif
