/* Builds graphs and runs functions of `mgpu-rt lower --graph`, as mgpu_rt.h describes. */
#ifndef MGPU_RT_GRAPH_GRAPHS_H
#define MGPU_RT_GRAPH_GRAPHS_H

#include "mgpu.h"
#include "mgpu_rt.h"

struct cache;

/* Begins and launches a graph, as mgpu_rt_graph_begin and mgpu_rt_graph_launch do. Both functions
 * require that the runtime has started. */
int graph_begin(bool of_function); /* graph of `mgpu-rt lower --graph`: if HIP fails, the function
                                    * runs without a graph */
int graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream);

/* Returns true if HIP no longer has the graph: the graph's device was reset, the process was
 * forked, or the process ends. */
bool graph_is_lost(const struct mgpu_rt_graph *graph);

/* Returns true if HIP still has the same allocations and registrations at the addresses that a
 * function's graph copies or fills. Asks HIP once about each address. */
bool graph_memory_stays(const struct mgpu_rt_graph *graph);

/* Returns true if HIP launches graphs with the right arguments. Before HIP 6.3 a launch of a graph,
 * and another thread's launch of the same kernel, may get each other's arguments. */
bool graph_keeps_arguments(void);

/* Prepares a forked child, in which all graphs are lost, because HIP has no graphs there. */
void graph_forked(void);

extern const struct cache graph_cache;

/* ---- functions, once the runtime has started ---- */

/* Enters a function whose calls may become a graph. If `overridden`, the function runs without a
 * graph, because overrides of the user must get every call. */
enum mgpu_rt_graph_way graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                                   size_t bytes, bool overridden);

/* Releases the graphs of those functions that no thread is executing. */
extern const struct cache function_graph_cache;

/* ---- graphs of others (capture.c) ---- */

/* For each function of the ABI, the function that answers calls while a thread uses an external
 * stream. NULL: the usual implementation answers the calls. */
extern const mgpu_rt_function capture_calls[ABI_COUNT];

/* Returns true if the calling thread's external stream is being captured. capture_on_stream returns
 * true if the given stream is being captured and is the external stream of any thread. */
bool capture_on_thread(void);
bool capture_on_stream(hipStream_t handle);

#endif
