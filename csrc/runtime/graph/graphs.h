/* Graphs of our own, as mgpu_rt.h has them. */
#ifndef MGPU_RT_GRAPH_GRAPHS_H
#define MGPU_RT_GRAPH_GRAPHS_H

struct cache;

/* mgpu_rt_graph_begin, once the runtime has started. */
int graph_begin(void);

extern const struct cache graph_cache;

#endif
