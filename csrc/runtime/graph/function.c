/* A function that `mgpu-rt lower --graph` has wrapped: plainly, built, or replayed. */
#include "graph/function.h"
#include "base/abi.h"
#include "base/counters.h"
#include "base/options.h"
#include "base/proof.h"
#include "base/state.h"
#include "cache/thread.h"
#include "graph/build.h"
#include "graph/capture.h"
#include "graph/graphs.h"
#include "hip/cuda.h"
#include "hip/hip.h"
#include "hip/report.h"

#include <stdlib.h>
#include <string.h>

/* A graph that was replayed less often than that did not pay. The next one then takes twice as many
 * calls with the same arguments. */
enum { PAYS = 16, MOST_WANTED = 1024 };

struct replayed {
    unsigned busy; /* it is one thread's; calls of others, and those within its own, run plainly */
    struct mgpu_rt_graph *graph; /* NULL: none */
    unsigned replays;            /* of that */
    unsigned same, wanted;       /* calls in a row with these arguments; so many lead to a graph */
    bool refused;                /* its calls cannot be in a graph */
    int device;                  /* of the last call */
    size_t bytes;                /* of its arguments */
    unsigned char arguments[];
};

/* Lives as long as the process: the program's object points to it. */
static struct replayed *state_of(struct mgpu_rt_graph_function *function, size_t bytes) {
    void *found = load_acquire(&function->state);
    if (found)
        return found;
    struct replayed *state = calloc(1, sizeof *state + bytes);
    if (!state)
        return NULL;
    state->bytes = bytes;
    state->device = -1;
    state->wanted = 1;
    if (cas_acq_rel_acquire(&function->state, &found, (void *)state))
        return state;
    free(state); /* another thread was first */
    return found;
}

static bool own_state(struct replayed *state) {
    unsigned nobody = 0;
    return cas_acq_rel(&state->busy, &nobody, 1);
}

static void let_go(struct replayed *state) {
    store_release(&state->busy, 0);
}

/* Before HIP 6.3 a graph may go wrong beside another thread that launches the same kernel. */
static bool may_replay(void) {
    return cuda_present() || hip_version >= HIP_6_3 ||
           PROOF(no_other_thread_launches, thread_is_alone());
}

static enum mgpu_rt_graph_way plainly(void) {
    if (runtime_counting())
        fetch_add_relaxed(&counts.graphs.plain, 1);
    return MGPU_RT_GRAPH_PLAINLY;
}

/* ---- a graph's end ---- */

static void drop_graph(struct replayed *state) {
    if (!state->graph)
        return;
    if (state->replays >= PAYS)
        state->wanted = 1;
    else if (state->wanted < MOST_WANTED)
        PROOF_STEP(graphs_that_do_not_pay_are_rare, state->wanted *= 2);
    mgpu_rt_graph_destroy(state->graph);
    state->graph = NULL;
}

static void refuse(struct replayed *state, const char *name) {
    state->refused = true;
    report_line("'%s' runs plainly from now on", name);
}

/* ---- arguments ---- */

/* True if they are those of the last call, on the same device; they are from now on. */
static bool are_same(struct replayed *state, const void *arguments) {
    const int device = hip_current_device();
    if (state->device == device &&
        PROOF(arguments_are_the_last_ones, memcmp(state->arguments, arguments, state->bytes) == 0))
        return true;
    drop_graph(state);
    state->device = device;
    state->same = 0;
    memcpy(state->arguments, arguments, state->bytes);
    return false;
}

/* ---- a call ---- */

/* The program goes on when its work is done, as it would have waited itself. False if nothing was
 * done. */
static bool replay(struct replayed *state) {
    if (DOUBT(graph_is_from_before_a_reset, graph_is_lost(state->graph)))
        return false;
    const hipStream_t stream = impl_mgpuStreamCreate();
    const bool launched = graph_launch(state->graph, stream) == 0;
    if (launched)
        impl_mgpuStreamSynchronize(stream);
    impl_mgpuStreamDestroy(stream);
    state->replays += launched;
    return launched;
}

static enum mgpu_rt_graph_way decide(struct replayed *state, const char *name,
                                     const void *arguments) {
    if (DOUBT(function_fits_no_graph, state->refused) || !are_same(state, arguments))
        return plainly();
    if (state->graph && replay(state))
        return MGPU_RT_GRAPH_DONE;
    if (state->graph) {
        drop_graph(state);
        state->same = 0;
    }
    if (++state->same < state->wanted)
        return plainly();
    if (graph_begin() == 0)
        return MGPU_RT_GRAPH_BUILDING;
    refuse(state, name);
    return plainly();
}

static struct advice answered = {
    .text = "'%s' runs plainly: a hook or runtime (--hook, --runtime, mgpu_rt.intercept) answers "
            "its calls"};

enum mgpu_rt_graph_way graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                                   size_t bytes, bool overridden) {
    if (DOUBT(call_is_within_a_graph, graph_building) || !caches_on() || runtime_exiting() ||
        DOUBT(call_is_within_a_capture, capture_on_thread()) || !may_replay())
        return plainly();
    if (DOUBT(override_sees_no_replay, overridden)) {
        report_once(&answered, function->name);
        return plainly();
    }
    struct replayed *state = state_of(function, bytes);
    if (!state || !own_state(state))
        return plainly();
    const enum mgpu_rt_graph_way way = decide(state, function->name, arguments);
    if (way != MGPU_RT_GRAPH_BUILDING)
        let_go(state);
    return way;
}

bool graph_leave(struct mgpu_rt_graph_function *function) {
    struct replayed *state = function->state;
    state->graph = mgpu_rt_graph_end();
    state->replays = 0;
    const bool done = state->graph && replay(state);
    if (!done) {
        drop_graph(state);
        refuse(state, function->name);
        (void)plainly(); /* counts */
    }
    let_go(state);
    return done;
}
