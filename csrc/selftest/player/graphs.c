/* Steps for external streams and graphs. The program captures a graph on an external stream, or the
 * library builds a graph. All steps except captures call functions of mgpu_rt.h. */
#include "steps.h"

struct mgpu_rt_graph;

int mgpu_rt_use_stream(void *) __attribute__((weak));
int mgpu_rt_graph_begin(void) __attribute__((weak));
struct mgpu_rt_graph *mgpu_rt_graph_end(void) __attribute__((weak));
int mgpu_rt_graph_launch(struct mgpu_rt_graph *, void *stream) __attribute__((weak));
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *) __attribute__((weak));

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
    {NULL, NULL},
};
