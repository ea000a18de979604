#include "graph/answer.h"
#include "base/options.h"
#include "graph/build.h"
#include "graph/calls.h"
#include "graph/capture.h"

mgpu_rt_function graph_find(enum abi_index function) {
    if (graph_building)
        return graph_call(function);
    return caches_on() && runtime_is(MODE_LENT) ? capture_calls[function] : NULL;
}
