/* Graphs of our own, as mgpu_rt.h has them. */
#ifndef MGPU_RT_GRAPH_GRAPHS_H
#define MGPU_RT_GRAPH_GRAPHS_H

#include "mgpu.h"

#include <stdbool.h>

struct cache;
struct mgpu_rt_graph;

/* The functions of mgpu_rt.h, once the runtime has started. */
int graph_begin(bool of_function); /* of `mgpu-rt lower --graph`: it runs plainly if HIP fails */
struct mgpu_rt_graph *graph_end(void);
int graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream);
void graph_destroy(struct mgpu_rt_graph *graph);
char *graph_dot(const struct mgpu_rt_graph *graph);

/* Nothing of it is HIP's any more: its device was reset, or the process was forked. */
bool graph_is_lost(const struct mgpu_rt_graph *graph);

/* All memory of the program that a function's graph copies or fills is what it was when the graph
 * was built. Asks HIP, once for each address. */
bool graph_memory_stays(const struct mgpu_rt_graph *graph);

/* The child of a fork has no graphs. */
void graph_forked(void);

extern const struct cache graph_cache;

#endif
