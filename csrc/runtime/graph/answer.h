/* Calls that become part of a graph: of one that the calling thread builds (calls.c), or that the
 * program captures on a stream of its own (capture.c).
 *
 * Costs nothing else: MODE_GRAPH and MODE_LENT are bits of runtime_mode, so only while somebody
 * builds, or a stream is lent, do calls take the slow entry and look here. */
#ifndef MGPU_RT_GRAPH_ANSWER_H
#define MGPU_RT_GRAPH_ANSWER_H

#include "base/abi.h"
#include "base/likely.h"
#include "base/state.h"
#include "mgpu_rt.h"

mgpu_rt_function graph_find(enum abi_index function);

/* What answers a call of the program's in place of its implementation; NULL: nothing does. */
static inline mgpu_rt_function graph_taken(enum abi_index function) {
    return UNLIKELY(runtime_is(MODE_GRAPH | MODE_LENT)) ? graph_find(function) : NULL;
}

#endif
