/* Steps for external streams, graphs and overrides. The program captures a graph on an external
 * stream, or the library builds a graph. The library also replays functions of `mgpu-rt lower
 * --graph` as graphs. An override must not get calls for graphs or external streams.
 *
 * All steps except captures call functions of mgpu_rt.h. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mgpu_rt_graph;
struct mgpu_rt_graph_function {
    const char *name;
    void *state;
};
struct mgpu_rt_scratch {
    void *stream, *data;
    size_t capacity;
};
enum { REPLAYED, PLAINLY, BUILDING };

int mgpu_rt_use_stream(void *) __attribute__((weak));
int mgpu_rt_graph_begin(void) __attribute__((weak));
struct mgpu_rt_graph *mgpu_rt_graph_end(void) __attribute__((weak));
int mgpu_rt_graph_launch(struct mgpu_rt_graph *, void *stream) __attribute__((weak));
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *) __attribute__((weak));
char *mgpu_rt_graph_dot(const struct mgpu_rt_graph *) __attribute__((weak));
int mgpu_rt_graph_enter(struct mgpu_rt_graph_function *, const void *arguments, size_t)
    __attribute__((weak));
int mgpu_rt_graph_leave(struct mgpu_rt_graph_function *) __attribute__((weak));
void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *, size_t bytes) __attribute__((weak));
int mgpu_rt_intercept(const char *name, void (*instead)(void)) __attribute__((weak));
void (*mgpu_rt_native(const char *name))(void) __attribute__((weak));

/* lend STREAM: from now on mgpuStreamCreate returns this stream, until a step lends the null
 * stream */
static void play_lend(const struct step *step) {
    say(step, "%d", mgpu_rt_use_stream(STREAM(0)));
}

/* ---- graphs that the program captures ---- */

static void *captured[MOST_OBJECTS]; /* graphs that are ready to be launched */

/* capture STREAM MODE */
static void play_capture(const struct step *step) {
    check(step, HIP(hipStreamBeginCapture, void *, int)(STREAM(0), (int)ARGUMENT(1)));
}

/* captured STREAM GRAPH: ends the capture */
static void play_captured(const struct step *step) {
    void *graph = NULL;
    check(step, HIP(hipStreamEndCapture, void *, void **)(STREAM(0), &graph));
    check(step, HIP(hipGraphInstantiate, void **, void *, void *, char *,
                    size_t)(&captured[ARGUMENT(1)], graph, NULL, NULL, 0));
}

/* launchcaptured GRAPH STREAM */
static void play_launch_captured(const struct step *step) {
    check(step, HIP(hipGraphLaunch, void *, void *)(captured[ARGUMENT(0)], STREAM(1)));
}

/* ---- graphs that the library builds ---- */

static struct mgpu_rt_graph *graphs[MOST_OBJECTS];
#define GRAPH(n) graphs[ARGUMENT(n)]

/* build: the following calls become nodes */
static void play_build(const struct step *step) {
    say(step, "%d", mgpu_rt_graph_begin());
}

/* built GRAPH: finishes the graph that the step build began */
static void play_built(const struct step *step) {
    GRAPH(0) = mgpu_rt_graph_end();
    say_handle(step, GRAPH(0));
}

/* replay GRAPH STREAM */
static void play_replay(const struct step *step) {
    say(step, "%d", mgpu_rt_graph_launch(GRAPH(0), STREAM(1)));
}

/* ungraph GRAPH */
static void play_ungraph(const struct step *step) {
    mgpu_rt_graph_destroy(GRAPH(0));
    GRAPH(0) = NULL;
}

/* Returns whether the graph's DOT text contains a path of edges from one node to another. */
static int leads(const char *dot, int from, int to) {
    char edge[32];
    snprintf(edge, sizeof edge, "\n  %d -> ", from);
    for (const char *at = dot; (at = strstr(at, edge)) != NULL; ++at) {
        const int next = (int)strtol(at + strlen(edge), NULL, 10);
        if (next == to || (next < to && leads(dot, next, to)))
            return 1;
    }
    return 0;
}

/* order GRAPH FROM TO: prints the order of two nodes, by their numbers */
static void play_order(const struct step *step) {
    char *dot = mgpu_rt_graph_dot(GRAPH(0));
    if (dot == NULL)
        say(step, "no graph");
    else
        say(step, "%s", leads(dot, (int)ARGUMENT(1), (int)ARGUMENT(2)) ? "ordered" : "concurrent");
    free(dot);
}

/* scratch KIB STREAM: grows a scratch buffer to KIB KiB, then to twice that size */
static void play_scratch(const struct step *step) {
    static struct mgpu_rt_scratch scratch;
    scratch.stream = STREAM(1);
    const size_t bytes = (size_t)ARGUMENT(0) << 10;
    say_handle(step, mgpu_rt_scratch_reserve(&scratch, bytes));
    say_handle(step, mgpu_rt_scratch_reserve(&scratch, 2 * bytes));
}

/* ---- functions as `mgpu-rt lower --graph` writes them ---- */

struct call {
    void *image, *host;
    int64_t image_bytes, count, k, inner;
};

static struct mgpu_rt_graph_function lowered[] = {{"first", NULL}, {"second", NULL}};

/* Copies words to the device, mixes them there with a kernel, and copies them back; creates all
 * objects, waits for them and destroys them. */
static void run_lowered(const struct step *step, const struct call *call);

static void call_lowered(const struct step *step, struct mgpu_rt_graph_function *function,
                         const struct call *call) {
    const int way = mgpu_rt_graph_enter(function, call, sizeof *call);
    if (way == REPLAYED)
        return;
    run_lowered(step, call);
    if (way == BUILDING && mgpu_rt_graph_leave(function) != 0)
        run_lowered(step, call);
}

static void run_lowered(const struct step *step, const struct call *call) {
    const size_t bytes = 4 * (size_t)call->count;
    if (call->inner) {
        struct call within = *call;
        within.inner = 0;
        for (int i = 0; i < call->inner; ++i)
            call_lowered(step, &lowered[1], &within);
        return;
    }
    void *stream = mgpuStreamCreate();
    void *module = mgpuModuleLoad(call->image, (size_t)call->image_bytes);
    void *function = mgpuModuleGetFunction(module, "mix");
    void *block = mgpuMemAlloc(bytes, stream, false);
    mgpuMemcpy(block, call->host, bytes, stream);
    mgpuStreamSynchronize(stream);
    launch_mix(step, function, stream, block, call->count, call->k);
    mgpuStreamSynchronize(stream);
    mgpuMemcpy(call->host, block, bytes, stream);
    mgpuMemFree(block, stream);
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    mgpuModuleUnload(module);
}

/* call IMAGE HOST COUNT K INNER: calls the second function; if INNER is not 0, calls the first
 * function. The first function calls the second function INNER times */
static void play_call(const struct step *step) {
    size_t bytes;
    const void *image = image_content((int)ARGUMENT(0), &bytes);
    const struct call call = {
        (void *)(uintptr_t)image, BUFFER(1), (int64_t)bytes, ARGUMENT(2), ARGUMENT(3), ARGUMENT(4)};
    call_lowered(step, &lowered[ARGUMENT(4) == 0], &call);
}

/* ---- overrides ---- */

static const char *const overridable[] = {"mgpuStreamCreate", "mgpuStreamDestroy",
                                          "mgpuEventCreate", NULL};
static int override_calls;

static void *create_stream_instead(void) {
    ++override_calls;
    return ((void *(*)(void))mgpu_rt_native(overridable[0]))();
}

static void destroy_stream_instead(void *stream) {
    ++override_calls;
    ((void (*)(void *))mgpu_rt_native(overridable[1]))(stream);
}

static void *create_event_instead(void) {
    ++override_calls;
    return ((void *(*)(void))mgpu_rt_native(overridable[2]))();
}

/* override FUNCTION ON: installs an override of the function, or removes the override if ON is 0;
 * FUNCTION 3 does not exist */
static void play_override(const struct step *step) {
    void (*const instead[])(void) = {(void (*)(void))create_stream_instead,
                                     (void (*)(void))destroy_stream_instead,
                                     (void (*)(void))create_event_instead, NULL};
    override_calls = 0;
    say(step, "%d",
        mgpu_rt_intercept(overridable[ARGUMENT(0)],
                          ARGUMENT(1) != 0 ? instead[ARGUMENT(0)] : NULL));
}

/* overridden: prints how many calls the override has got */
static void play_overridden(const struct step *step) {
    say(step, "%d calls", override_calls);
}

/* ---- the steps ---- */

const struct step_kind graph_steps[] = {
    {"lend", play_lend},
    {"capture", play_capture},
    {"captured", play_captured},
    {"launchcaptured", play_launch_captured},
    {"build", play_build},
    {"built", play_built},
    {"replay", play_replay},
    {"ungraph", play_ungraph},
    {"order", play_order},
    {"scratch", play_scratch},
    {"call", play_call},
    {"override", play_override},
    {"overridden", play_overridden},
    {NULL, NULL},
};
