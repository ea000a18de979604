/* Begins, ends, launches and destroys graphs. */
#include "driver/device.h"
#include "graphs/build.h"
#include "graphs/graphs.h"
#include "memory/blocks.h"
#include "memory/registrations.h"
#include "modules/modules.h"
#include "streams/mgpu_stream.h"
#include "telemetry/trace.h"

#include <stdlib.h>

static const char launch_expression[] = "hipGraphLaunch(graph, stream)";
static struct advice no_caches = {
    .text = "no graph is begun, so calls run at once: a graph needs MGPU_RT_CACHE=on"};
static struct advice device_reset = {
    .text = "no graph is begun, so calls run at once: the device was reset"};
static struct advice other_device = {
    .text = "the graph was built on device %d, and is launched on a stream of device %d: launch "
            "the graph on a stream of the first device"};
static struct advice other_graph = {
    .text = "stream %p is being captured: it cannot launch a graph of this library, because the "
            "captured graph could use the memory of this graph after mgpu_rt_graph_destroy"};
static struct advice beside_others = {
    .text = "a graph is launched while other threads make calls: HIP before 6.3 may run kernels "
            "of the graph, and the same kernels of these threads, with wrong arguments. Make all "
            "calls on one thread (docs/graphs.md)"};
static struct advice memory_changed = {
    .text = "the graph copies or fills %p, which was freed, allocated, registered or unregistered "
            "after the graph was built, so HIP may access the old memory: destroy the graph, and "
            "build it again"};

/* Runs in the forked child, which has only this thread. */
void graph_forked(void) {
    graph_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* another thread may have held the
                                                              * lock */
    graph_building = NULL;
}

/* Counts the threads that are building a graph. Under tables_lock. */
static void count_builders(int change) {
    static int builders;
    pthread_mutex_lock(&tables_lock);
    builders += change;
    if (builders)
        fetch_or_release(&runtime_mode, MODE_GRAPH);
    else
        fetch_and_release(&runtime_mode, ~(unsigned)MODE_GRAPH);
    pthread_mutex_unlock(&tables_lock);
}

/* ---- ending one ---- */

/* Waits for the graph's work. Returns false if HIP refuses to wait, as during some captures of
 * other threads: nothing shows then when the work is done. */
static bool wait_for_graph(const struct mgpu_rt_graph *graph) {
    if (!DOUBT(graph_may_run_still, graph->launched))
        return true;
    const hipError_t error = stream_wait_for_device(graph->device);
    REPORT("hipDeviceSynchronize()", error, NULL);
    return PROOF(graph_has_ended, error == hipSuccess);
}

/* hipGraphDestroy does not wait for the graph's work. The library waits for the device, because
 * only idle memory may return to the pools. If HIP refuses, the memory and the modules stay the
 * graph's for good. */
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *graph) {
    if (!graph)
        return;
    const bool known = !graph_is_lost(graph);
    const bool releases = known && wait_for_graph(graph);
    pthread_mutex_lock(&graph_lock);
    if (known && graph->executable)
        REPORT("hipGraphExecDestroy(graph)", hip.GraphExecDestroy(graph->executable), NULL);
    if (known)
        REPORT("hipGraphDestroy(graph)", hip.GraphDestroy(graph->graph), NULL);
    pthread_mutex_unlock(&graph_lock);
    if (releases)
        (void)block_take_from_graph(graph->number);
    for (const struct graph_module *held = graph->modules; held && releases; held = held->next)
        module_let_go(held->module);
    graph_list_free(&graph->modules);
    graph_list_free(&graph->memory);
    free(graph);
}

/* ---- building ---- */

int graph_begin(bool of_function) {
    static uint64_t graphs = UINT64_C(1) << 63; /* HIP counts captures from 1 */
    if (graph_building) {
        PROOF_STEP(graph_within_a_graph_ends_it,
                   graph_fail("the program begins another graph before it ends this one"));
        return -1;
    }
    const int device = hip_current_device();
    if (!caches_on() || !device_kept(device) || !device_has_caches(device)) {
        report_once(caches_on() ? &device_reset : &no_caches);
        return -1;
    }
    struct mgpu_rt_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return -1;
    lazy_settle(NULL);
    graph->number = add_fetch_relaxed(&graphs, 1);
    graph->device = device;
    graph->of_function = of_function;
    pthread_mutex_lock(&graph_lock);
    const hipError_t error = hip.GraphCreate(&graph->graph, 0);
    pthread_mutex_unlock(&graph_lock);
    if (error != hipSuccess) {
        graph_report_failure(of_function, "hipGraphCreate(&graph, 0)", error);
        free(graph);
        return -1;
    }
    (void)thread_get(); /* so that the end of the thread is detected */
    graph_building = graph;
    count_builders(1);
    return 0;
}

struct mgpu_rt_graph *mgpu_rt_graph_end(void) {
    struct mgpu_rt_graph *graph = graph_building;
    if (!graph)
        return NULL;
    if (DOUBT(building_ends_on_another_device, hip_current_device() != graph->device))
        graph_fail("it begins on device %d and ends on device %d", graph->device,
                   hip_current_device());
    if (graph->node_count && !graph->failed) {
        pthread_mutex_lock(&graph_lock);
        const hipError_t error =
            hip.GraphInstantiate(&graph->executable, graph->graph, NULL, NULL, 0);
        pthread_mutex_unlock(&graph_lock);
        if (error != hipSuccess)
            graph_fail_call("hipGraphInstantiate(&executable, graph, NULL, NULL, 0)", error);
    }
    graph_building = NULL;
    count_builders(-1);
    if (runtime_counting())
        fetch_add_relaxed(graph->failed ? &counts.graphs.refused : &counts.graphs.built, 1);
    if (!graph->failed)
        return graph;
    mgpu_rt_graph_destroy(graph);
    return NULL;
}

static void end_unfinished(struct thread *thread) {
    (void)thread;
    if (!graph_building)
        return;
    graph_fail("the thread that builds it ends");
    (void)mgpu_rt_graph_end();
}

const struct cache graph_cache = {.thread_ends = end_unfinished};

/* ---- launching ---- */

static void count_replay(const struct mgpu_rt_graph *graph, uint64_t begin) {
    fetch_add_relaxed(&counts.graphs.launches, 1);
    fetch_add_relaxed(&counts.graphs.nodes, (uint64_t)graph->node_count);
    if (trace_on())
        trace_add(&(struct trace_event){.kind = TRACE_GRAPH,
                                        .begin = begin,
                                        .nanoseconds = clock_ns() - begin,
                                        .bytes = (uint64_t)graph->node_count});
}

bool graph_is_lost(const struct mgpu_rt_graph *graph) {
    return DOUBT(fork_ends_graphs, runtime_forked) || !device_kept(graph->device) ||
           !device_has_caches(graph->device);
}

/* Returns true if HIP or the cache has released the memory since a node was created, or HIP has
 * registered or unregistered the memory. Asks HIP. */
static bool has_changed(const struct graph_memory *memory) {
    return graph_memory_number(memory->address) != memory->number ||
           (memory->block && (!block_held_by_program(memory->block) ||
                              load_relaxed(&memory->block->uses) != memory->uses));
}

/* Returns the first memory that has changed since the graph was built, or NULL. */
static const struct graph_memory *changed_memory(const struct mgpu_rt_graph *graph) {
    if (DOUBT(graph_copies_idle_memory,
              load_relaxed(
                  &registrations_idle))) /* a node of a graph may use memory that HIP has pinned */
        (void)registration_cache.trim(ALL_DEVICES);
    const struct graph_memory *memory = graph->memory;
    while (memory && !has_changed(memory))
        memory = memory->next;
    return memory;
}

bool graph_memory_stays(const struct mgpu_rt_graph *graph) {
    return !changed_memory(graph);
}

bool graph_keeps_arguments(void) {
    return cuda_present() || hip_version >= HIP_6_3 ||
           PROOF(no_other_thread_launches, thread_is_alone());
}

/* Returns the device of a stream; the null stream belongs to the current device. The library asks
 * HIP about streams of the program, and assumes the graph's device if HIP does not report a
 * device. */
static int device_of(const struct mgpu_rt_graph *graph, const struct stream *stream,
                     hipStream_t handle) {
    int device = graph->device;
    if (hip_device_count == 1)
        return device;
    if (stream && stream_state(stream) == STREAM_LIVE)
        return stream->device;
    if (!handle)
        return hip_current_device();
    return device_answered(hip.StreamGetDevice(handle, &device)) ? device : graph->device;
}

/* HIP 5.2.3 crashes if the current device is not the graph's device. */
static hipError_t launch_on_device(const struct mgpu_rt_graph *graph, hipStream_t handle) {
    const int current = hip_current_device();
    hipError_t error = DOUBT(hip_crashes_on_another_device, current != graph->device)
                           ? hip.SetDevice(graph->device)
                           : hipSuccess;
    pthread_mutex_lock(&graph_lock);
    if (error == hipSuccess)
        error = hip.GraphLaunch(graph->executable, handle);
    pthread_mutex_unlock(&graph_lock);
    if (current != graph->device)
        (void)hip.SetDevice(current);
    return error;
}

int graph_launch(struct mgpu_rt_graph *graph, hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *stream;
    if (graph_building) {
        PROOF_STEP(launch_of_a_graph_ends_it, graph_fail("it launches another graph"));
        return -1;
    }
    if (!graph) {
        report_failure(launch_expression, hipErrorInvalidValue, NULL);
        return -1;
    }
    if (graph_is_lost(graph)) {
        report_failure(launch_expression, hipErrorContextIsDestroyed, NULL);
        return -1;
    }
    if (!stream_usable(thread, handle, &stream, launch_expression))
        return -1;
    const int device = device_of(graph, stream, handle);
    if (DOUBT(stream_is_of_another_device, device != graph->device)) {
        report_failure(launch_expression, hipErrorInvalidDevice, &other_device, graph->device,
                       device);
        return -1;
    }
    if (DOUBT(capture_would_keep_the_graph, capture_on_stream(handle))) {
        report_failure(launch_expression, hipErrorStreamCaptureUnsupported, &other_graph,
                       (void *)handle);
        return -1;
    }
    if (!graph->executable)
        return 0;
    lazy_end();
    const struct graph_memory *changed = graph->of_function ? NULL : changed_memory(graph);
    if (DOUBT(memory_is_not_what_the_graph_copies, changed)) {
        report_failure(launch_expression, hipErrorInvalidValue, &memory_changed, changed->address);
        return -1;
    }
    if (!graph->of_function && !graph_keeps_arguments())
        report_once(&beside_others);
    store_release(&graph->launched, true);
    const uint64_t begin = runtime_counting() ? clock_ns() : 0;
    const hipError_t error = launch_on_device(graph, handle);
    stream_launched(stream);
    if (error != hipSuccess)
        graph_report_failure(graph->of_function, launch_expression, error);
    else if (begin)
        count_replay(graph, begin);
    return error == hipSuccess ? 0 : -1;
}
