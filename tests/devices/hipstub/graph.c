#include "graph.h"

#include "calls.h"
#include "log.h"

#include <stdlib.h>

struct hipGraphNode {
    struct operation *operation;
    struct ihipGraph *graph;
    struct hipGraphNode **after;
    size_t after_count;
    unsigned long long done; /* the graph's last launch that has executed this node */
};

struct ihipGraph {
    struct object object;
    struct hipGraphNode **nodes;
    size_t count, room;
    unsigned users; /* number of handles, executables and pending launches */
    /* for captures */
    struct ihipStream_t *origin;
    int mode;
    pthread_t thread;
    unsigned long long id;
    struct ihipGraph *next; /* next in the list of all capturing graphs */
};

struct hipGraphExec {
    struct object object;
    struct ihipGraph *graph;
};

struct launch_of_graph {
    struct operation operation;
    struct ihipGraph *graph;
};

static struct ihipGraph *capturing; /* all capturing graphs */
static _Thread_local int thread_mode = hipStreamCaptureModeGlobal;

/* ---- graphs ---- */

static struct ihipGraph *graph_new(void) {
    struct ihipGraph *graph = object_new(GRAPH, sizeof *graph);
    graph->users = 1;
    return graph;
}

static void graph_leave(struct ihipGraph *graph) {
    if (--graph->users > 0)
        return;
    for (size_t i = 0; i < graph->count; i++) {
        operation_end(graph->nodes[i]->operation);
        free(graph->nodes[i]->after);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    graph->nodes = NULL;
    graph->count = graph->room = 0;
}

static struct hipGraphNode *add_node(struct ihipGraph *graph, struct operation *operation,
                                     const hipGraphNode_t *after, size_t count) {
    struct hipGraphNode *node = calloc(1, sizeof *node);
    node->operation = operation;
    node->graph = graph;
    node->after = calloc(count + 1, sizeof(hipGraphNode_t));
    for (size_t i = 0; i < count; i++)
        node->after[i] = after[i];
    node->after_count = count;
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->nodes = realloc(graph->nodes, graph->room * sizeof *graph->nodes);
    }
    graph->nodes[graph->count++] = node;
    return node;
}

static hipError_t check(const char *function, struct ihipGraph *graph, const hipGraphNode_t *after,
                        size_t count) {
    if (!object_check(function, GRAPH, graph))
        return hipErrorInvalidValue;
    for (size_t i = 0; i < count; i++)
        if (after[i] == NULL || after[i]->graph != graph)
            return hipErrorInvalidValue;
    return hipSuccess;
}

hipError_t emu_hipGraphCreate(hipGraph_t *graph, unsigned flags) {
    if (graph == NULL || flags != 0)
        return hipErrorInvalidValue;
    *graph = graph_new();
    return hipSuccess;
}

hipError_t emu_hipGraphDestroy(hipGraph_t graph) {
    if (!object_check("hipGraphDestroy", GRAPH, graph))
        return hipErrorInvalidValue;
    object_kill(&graph->object);
    graph_leave(graph);
    return hipSuccess;
}

hipError_t emu_hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const hipKernelNodeParams *params) {
    struct operation *operation = NULL;
    hipError_t error = check("hipGraphAddKernelNode", graph, after, count);
    /* AMD's HIP 5.2.3 and 5.7.1 return hipErrorInvalidValue too. */
    if (error == hipSuccess && (params->kernelParams == NULL) == (params->extra == NULL))
        error = hipErrorInvalidValue;
    if (error == hipSuccess)
        error = launch_operation(params, &operation);
    if (error == hipSuccess)
        *node = add_node(graph, operation, after, count);
    return error;
}

hipError_t emu_hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const hipMemsetParams *params) {
    struct operation *operation = NULL;
    hipError_t error = check("hipGraphAddMemsetNode", graph, after, count);
    if (error == hipSuccess)
        error = fill_operation(params, &operation);
    if (error == hipSuccess)
        *node = add_node(graph, operation, after, count);
    return error;
}

hipError_t emu_hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                       const hipGraphNode_t *after, size_t count, void *to,
                                       const void *from, size_t bytes, int kind) {
    struct operation *operation = NULL;
    (void)kind; /* AMD's HIP ignores `kind` too, and derives the direction from the addresses */
    hipError_t error = check("hipGraphAddMemcpyNode1D", graph, after, count);
    if (error == hipSuccess)
        error = copy_operation(to, from, bytes, &operation);
    if (error == hipSuccess)
        *node = add_node(graph, operation, after, count);
    return error;
}

/* ---- executables ---- */

hipError_t emu_hipGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph,
                                   hipGraphNode_t *wrong, char *text, size_t room) {
    (void)wrong, (void)text, (void)room;
    if (executable == NULL || !object_check("hipGraphInstantiate", GRAPH, graph))
        return hipErrorInvalidValue;
    *executable = object_new(EXECUTABLE, sizeof **executable);
    (*executable)->graph = graph;
    graph->users++;
    return hipSuccess;
}

hipError_t emu_hipGraphExecDestroy(hipGraphExec_t executable) {
    if (!object_check("hipGraphExecDestroy", EXECUTABLE, executable))
        return hipErrorInvalidValue;
    object_kill(&executable->object);
    graph_leave(executable->graph);
    return hipSuccess;
}

static bool is_ready(const struct hipGraphNode *node, unsigned long long launch) {
    for (size_t i = 0; i < node->after_count; i++)
        if (node->after[i]->done != launch)
            return false;
    return node->done != launch;
}

/* Runs without the lock. Launches of one graph run one after another, as in HIP. */
static void run_graph(struct operation *operation) {
    static unsigned long long launches;
    static unsigned seed = 1;
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    struct ihipGraph *graph = ((struct launch_of_graph *)operation)->graph;
    pthread_mutex_lock(&one_at_a_time);
    const unsigned long long launch = ++launches;
    for (size_t done = 0; done < graph->count; done++) {
        seed = seed * 1103515245u + 12345u;
        const size_t first = (seed >> 8) % graph->count;
        struct hipGraphNode *node = NULL;
        for (size_t i = 0; i < graph->count && node == NULL; i++)
            if (is_ready(graph->nodes[(first + i) % graph->count], launch))
                node = graph->nodes[(first + i) % graph->count];
        if (node->operation->work != NULL)
            node->operation->work(node->operation);
        node->done = launch;
    }
    pthread_mutex_unlock(&one_at_a_time);
}

static void end_launch_of_graph(struct operation *operation) {
    graph_leave(((struct launch_of_graph *)operation)->graph);
}

hipError_t emu_hipGraphLaunch(hipGraphExec_t executable, hipStream_t handle) {
    struct ihipStream_t *stream = stream_of("hipGraphLaunch", handle);
    if (stream == NULL)
        return hipErrorContextIsDestroyed;
    if (!object_check("hipGraphLaunch", EXECUTABLE, executable))
        return hipErrorInvalidValue;
    struct launch_of_graph *launch = calloc(1, sizeof *launch);
    launch->operation =
        (struct operation){.work = run_graph, .end = end_launch_of_graph, .delayed = true};
    launch->graph = executable->graph;
    launch->graph->users++;
    stream_submit(stream, &launch->operation);
    return hipSuccess;
}

/* ---- captures ---- */

/* Adds the operation after the last node, so a captured graph is a chain. */
void graph_capture(struct ihipStream_t *stream, struct operation *operation) {
    struct ihipGraph *graph = stream->capture;
    hipGraphNode_t last = graph->count ? graph->nodes[graph->count - 1] : NULL;
    add_node(graph, operation, &last, graph->count > 0);
}

hipError_t graph_capture_wait(struct ihipStream_t *stream, struct ihipEvent_t *event) {
    if (event->capture == NULL || (stream->capture != NULL && stream->capture != event->capture))
        return hipErrorStreamCaptureIsolation;
    stream->capture = event->capture;
    return hipSuccess;
}

hipError_t graph_spoil(struct ihipStream_t *stream) {
    stream->capture->origin->spoilt = true;
    return hipErrorStreamCaptureUnsupported;
}

bool graph_forbids(void) {
    bool forbidden = false;
    if (thread_mode == hipStreamCaptureModeRelaxed)
        return false;
    for (struct ihipGraph *graph = capturing; graph != NULL; graph = graph->next) {
        const bool own = pthread_equal(graph->thread, pthread_self());
        if (graph->mode == hipStreamCaptureModeGlobal ||
            (graph->mode == hipStreamCaptureModeThreadLocal && own)) {
            graph->origin->spoilt = true;
            forbidden = true;
        }
    }
    return forbidden;
}

hipError_t emu_hipStreamBeginCapture(hipStream_t handle, int mode) {
    static unsigned long long captures;
    struct ihipStream_t *stream = stream_of("hipStreamBeginCapture", handle);
    if (stream == NULL)
        return hipErrorContextIsDestroyed;
    if (handle == NULL || stream->capture != NULL)
        return hipErrorStreamCaptureUnsupported;
    struct ihipGraph *graph = graph_new();
    graph->origin = stream;
    graph->mode = mode;
    graph->thread = pthread_self();
    graph->id = ++captures;
    graph->next = capturing;
    capturing = graph;
    stream->capture = graph;
    stream->spoilt = false;
    return hipSuccess;
}

hipError_t emu_hipStreamEndCapture(hipStream_t handle, hipGraph_t *graph) {
    struct ihipStream_t *stream = stream_of("hipStreamEndCapture", handle);
    if (stream == NULL || graph == NULL || stream->capture == NULL)
        return hipErrorInvalidValue;
    struct ihipGraph **link = &capturing;
    while (*link != stream->capture)
        link = &(*link)->next;
    *link = stream->capture->next;
    *graph = stream->capture;
    stream_end_capture(*graph);
    if (!stream->spoilt)
        return hipSuccess;
    object_kill(&(*graph)->object);
    graph_leave(*graph);
    *graph = NULL;
    return hipErrorStreamCaptureInvalidated;
}

hipError_t emu_hipStreamIsCapturing(hipStream_t handle, int *status) {
    return emu_hipStreamGetCaptureInfo(handle, status, &(unsigned long long){0});
}

hipError_t emu_hipStreamGetCaptureInfo(hipStream_t handle, int *status, unsigned long long *id) {
    struct ihipStream_t *stream = stream_of("hipStreamIsCapturing", handle);
    if (stream == NULL)
        return hipErrorContextIsDestroyed;
    *status = stream->capture == NULL ? 0 : stream->capture->origin->spoilt ? 2 : 1;
    if (stream->capture != NULL)
        *id = stream->capture->id;
    return hipSuccess;
}

hipError_t emu_hipThreadExchangeStreamCaptureMode(int *mode) {
    const int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return hipSuccess;
}
