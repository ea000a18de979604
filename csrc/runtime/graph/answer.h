/* Calls that become part of a graph. The calling thread builds it (calls.c), or the program
 * captures it on a stream of its own (capture.c).
 *
 * Costs nothing else: MODE_GRAPH and MODE_LENT are bits of runtime_mode. Calls take the slow entry
 * and look here only while somebody builds, or a stream is lent. */
#ifndef MGPU_RT_GRAPH_ANSWER_H
#define MGPU_RT_GRAPH_ANSWER_H

#include "base/abi.h"
#include "base/likely.h"
#include "base/state.h"
#include "mgpu_rt.h"

mgpu_rt_function graph_find(enum abi_index function);

/* The function that answers a call of the program's in place of its implementation; NULL: none. */
static inline mgpu_rt_function graph_taken(enum abi_index function) {
    return UNLIKELY(runtime_is(MODE_GRAPH | MODE_LENT)) ? graph_find(function) : NULL;
}

#endif
