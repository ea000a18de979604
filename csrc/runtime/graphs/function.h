/* Functions of `mgpu-rt lower --graph`, as mgpu_rt.h has them, once the runtime has started. */
#ifndef MGPU_RT_GRAPH_FUNCTION_H
#define MGPU_RT_GRAPH_FUNCTION_H

#include "mgpu_rt.h"

#include <stdbool.h>

struct cache;

/* `overridden`: functions of the user's own answer calls, and are to see all of them. */
enum mgpu_rt_graph_way graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                                   size_t bytes, bool overridden);
/* False: it has yet to run, plainly. */
bool graph_leave(struct mgpu_rt_graph_function *function);

/* Gives back the graphs of functions that no thread is in. */
extern const struct cache function_graph_cache;

#endif
