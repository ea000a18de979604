/* Graphs of our own, as mgpu_rt.h has them. */
#ifndef MGPU_RT_GRAPH_GRAPHS_H
#define MGPU_RT_GRAPH_GRAPHS_H

#include "base/abi.h"

#include <stdbool.h>

struct cache;
struct mgpu_rt_graph;

/* mgpu_rt_graph_begin and mgpu_rt_graph_launch, once the runtime has started. */
int graph_begin(void);
int graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream);

/* Nothing of it is HIP's any more: its device was reset, or the process was forked. */
bool graph_is_lost(const struct mgpu_rt_graph *graph);

/* The child of a fork has no graphs. */
void graph_forked(void);

extern const struct cache graph_cache;

#endif
