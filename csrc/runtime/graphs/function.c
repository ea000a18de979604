/* Runs a function that `mgpu-rt lower --graph` has wrapped: without a graph, while its graph is
 * built, or as a replay. */
#include "driver/hip.h"
#include "driver/report.h"
#include "graphs/build.h"
#include "graphs/graphs.h"
#include "process/lines.h"
#include "shared/caches.h"
#include "telemetry/counters.h"

#include <stdlib.h>
#include <string.h>

/* A graph that is replayed fewer than PAYS times costs more time than it saves. After such a graph,
 * the library doubles the number of equal calls that lead to the function's next graph. */
enum { PAYS = 16, MOST_WANTED = 1024 };

/* Programs swap two buffers at each step, or rotate three buffers. Each order of the buffers gets
 * its own graph. */
enum { ORDERS = 4 };

/* The arguments of earlier calls, and the graph for calls with these arguments. */
struct known_call {
    struct mgpu_rt_graph *graph; /* NULL: none */
    unsigned replays;            /* how often the program has replayed `graph` */
    unsigned same;               /* number of further calls with these arguments since the first
                                  * call */
    unsigned last;               /* the number of the last call with these arguments */
    int device;                  /* device of these calls; -1: no call yet */
    unsigned char *arguments;
};

struct replayed {
    struct replayed *next;
    unsigned busy; /* one thread is in the function; calls of other threads, and recursive calls,
                    * run without a graph */
    unsigned calls;
    unsigned wanted;  /* this many calls with equal arguments lead to a graph */
    unsigned unknown; /* successive calls whose arguments are not in `known` */
    bool refused;     /* the function's calls cannot be part of a graph */
    size_t bytes;     /* size of a call's arguments */
    struct known_call known[ORDERS], *built; /* built: the entry whose graph was begun last */
    unsigned char arguments[];
};

static struct replayed *all;

/* The function whose graph the calling thread is building; NULL: none. */
static __thread struct replayed *builds __attribute__((tls_model("initial-exec")));

/* The state lives as long as the process, because the program's object points to it. */
static struct replayed *state_of(struct mgpu_rt_graph_function *function, size_t bytes) {
    void *found = load_acquire(&function->state);
    if (found)
        return found;
    struct replayed *state = calloc(1, sizeof *state + ORDERS * bytes);
    if (!state)
        return NULL;
    state->bytes = bytes;
    state->wanted = 1;
    for (unsigned i = 0; i < ORDERS; i++) {
        state->known[i].device = -1;
        state->known[i].arguments = state->arguments + i * bytes;
    }
    if (!cas_acq_rel_acquire(&function->state, &found, (void *)state)) {
        free(state); /* another thread has created the state first */
        return found;
    }
    state->next = load_acquire(&all);
    while (!cas_acq_rel_acquire(&all, &state->next, state))
        ;
    return state;
}

static bool acquire_state(struct replayed *state) {
    unsigned nobody = 0;
    return cas_acq_rel(&state->busy, &nobody, 1);
}

static void release_state(struct replayed *state) {
    store_release(&state->busy, 0);
}

static struct advice beside_others = {
    .text = "'%s' runs without a graph while other threads make calls: HIP before 6.3 may launch "
            "the graph with arguments of these threads"};

static bool may_replay(const char *name) {
    if (graph_keeps_arguments())
        return true;
    report_once(&beside_others, name);
    return false;
}

static enum mgpu_rt_graph_way plainly(void) {
    if (runtime_counting())
        fetch_add_relaxed(&counts.graphs.plain, 1);
    return MGPU_RT_GRAPH_PLAINLY;
}

/* ---- a graph's end ---- */

static void destroy(struct known_call *call) {
    mgpu_rt_graph_destroy(call->graph);
    call->graph = NULL;
    PROOF_STEP(dropped_graph_waits_for_more_calls, call->same = 0);
}

static void want_more(struct replayed *state) {
    if (state->wanted < MOST_WANTED)
        PROOF_STEP(graphs_that_do_not_pay_are_rare, state->wanted *= 2);
}

static void drop_graph(struct replayed *state, struct known_call *call) {
    if (!call->graph)
        return;
    if (call->replays >= PAYS)
        state->wanted = 1;
    else
        want_more(state);
    destroy(call);
}

/* Drops the function's graphs because memory is missing. The function's next graph needs more
 * calls, because memory may be missing again. */
static int drop_graphs(struct replayed *state) {
    int dropped = 0;
    for (struct known_call *call = state->known; call < state->known + ORDERS; call++)
        if (call->graph) {
            destroy(call);
            dropped++;
        }
    if (dropped)
        want_more(state);
    return dropped;
}

/* Drops graphs to free memory on the device. The graphs that other threads are running remain. If
 * this thread is building a function's graph, the function's other graphs are also dropped. */
static int drop_idle_graphs(int device) {
    int dropped = 0;
    (void)device;
    for (struct replayed *state = load_acquire(&all); state; state = state->next)
        if (DOUBT(other_graphs_of_the_function_give_way, state == builds)) {
            dropped += drop_graphs(state);
        } else if (DOUBT(graphs_of_other_functions_give_way, acquire_state(state))) {
            dropped += drop_graphs(state);
            release_state(state);
        }
    return dropped;
}

const struct cache function_graph_cache = {.trim = drop_idle_graphs};

static void refuse(struct replayed *state, const char *name) {
    state->refused = true;
    drop_graphs(state);
    line_print("'%s' runs without a graph from now on", name);
}

/* ---- arguments ---- */

static struct advice changing = {
    .text = "'%s' ran without a graph: each of %d calls in a row had other arguments than the %d "
            "calls before it, and a graph keeps the arguments of the call that built it"};

/* Finds the entry for calls with these arguments on the current device. The first call with new
 * arguments replaces the arguments that were used longest ago. */
static struct known_call *take_known(struct replayed *state, const char *name,
                                     const void *arguments) {
    const int device = hip_current_device();
    struct known_call *oldest = state->known;
    state->calls++;
    for (struct known_call *call = state->known; call < state->known + ORDERS; call++) {
        if (call->device == device &&
            PROOF(arguments_are_those_of_the_graph,
                  memcmp(call->arguments, arguments, state->bytes) == 0)) {
            state->unknown = 0;
            call->same++;
            call->last = state->calls;
            return call;
        }
        if (call->last < oldest->last)
            oldest = call;
    }
    drop_graph(state, oldest);
    oldest->device = device;
    oldest->same = 0;
    oldest->last = state->calls;
    memcpy(oldest->arguments, arguments, state->bytes);
    if (++state->unknown == PAYS)
        report_once(&changing, name, PAYS, ORDERS);
    return oldest;
}

/* ---- a call ---- */

/* Waits until the graph's work is done, because the function would also wait without a graph.
 * Returns false if no graph was replayed. */
static bool replay(struct known_call *call) {
    if (DOUBT(graph_is_from_before_a_reset, graph_is_lost(call->graph)))
        return false;
    const bool memory_stays =
        PROOF(memory_is_what_the_graph_copies, graph_memory_stays(call->graph));
    if (!memory_stays)
        return false;
    const hipStream_t stream = impl_mgpuStreamCreate();
    const bool launched = graph_launch(call->graph, stream) == 0;
    if (launched)
        impl_mgpuStreamSynchronize(stream);
    impl_mgpuStreamDestroy(stream);
    call->replays += launched;
    return launched;
}

static enum mgpu_rt_graph_way decide(struct replayed *state, const char *name,
                                     const void *arguments) {
    if (DOUBT(function_fits_no_graph, state->refused))
        return plainly();
    struct known_call *call = take_known(state, name, arguments);
    if (call->graph && replay(call))
        return MGPU_RT_GRAPH_DONE;
    if (call->graph) {
        drop_graph(state, call);
        call->same = 1;
    }
    if (call->same < state->wanted || !device_has_caches(call->device))
        return plainly();
    state->built = call;
    if (graph_begin(true) == 0) {
        builds = state;
        return MGPU_RT_GRAPH_BUILDING;
    }
    refuse(state, name);
    return plainly();
}

static struct advice answered = {.text = "'%s' runs without a graph: a hook or runtime in "
                                         "Python answers its calls (--hook, "
                                         "mgpu_rt.intercept, mgpu-rt check or diff)"};

enum mgpu_rt_graph_way graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                                   size_t bytes, bool overridden) {
    if (DOUBT(call_is_within_a_graph, graph_building) || !caches_on() || runtime_exiting() ||
        DOUBT(call_is_within_a_capture, capture_on_thread()) || !may_replay(function->name))
        return plainly();
    if (DOUBT(override_sees_no_replay, overridden)) {
        report_once(&answered, function->name);
        return plainly();
    }
    struct replayed *state = state_of(function, bytes);
    if (!state || !acquire_state(state))
        return plainly();
    const enum mgpu_rt_graph_way way = decide(state, function->name, arguments);
    if (way != MGPU_RT_GRAPH_BUILDING)
        release_state(state);
    return way;
}

int mgpu_rt_graph_leave(struct mgpu_rt_graph_function *function) {
    struct replayed *state = function->state;
    struct known_call *call = state->built;
    builds = NULL;
    call->graph = mgpu_rt_graph_end();
    call->replays = 0;
    const bool done = call->graph && replay(call);
    if (!done) {
        refuse(state, function->name);
        (void)plainly(); /* counts */
    }
    release_state(state);
    return done ? 0 : -1;
}
