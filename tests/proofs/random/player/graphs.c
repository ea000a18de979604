/* Steps of graphs that the library builds. Where it builds none, the program makes the calls. */
#include "steps.h"

struct mgpu_rt_graph;
int mgpu_rt_graph_begin(void) __attribute__((weak));
struct mgpu_rt_graph *mgpu_rt_graph_end(void) __attribute__((weak));
int mgpu_rt_graph_launch(struct mgpu_rt_graph *, void *stream) __attribute__((weak));
void mgpu_rt_graph_destroy(struct mgpu_rt_graph *) __attribute__((weak));

static struct {
    struct mgpu_rt_graph *graph;
    int first, last; /* the numbers of the steps of its calls */
    bool begun;
} graphs[MOST_OBJECTS];
#define GRAPH(n) graphs[ARGUMENT(n)]

/* graph NUMBER: the following calls become nodes */
static void play_graph(const struct step *step) {
    GRAPH(0).first = step->number;
    GRAPH(0).begun = mgpu_rt_graph_begin != NULL && mgpu_rt_graph_begin() == 0;
}

/* rerun NUMBER */
static void play_rerun(const struct step *step) {
    if (GRAPH(0).graph == NULL) {
        play_between(step->thread, GRAPH(0).first, GRAPH(0).last);
        return;
    }
    void *stream = mgpuStreamCreate();
    if (mgpu_rt_graph_launch(GRAPH(0).graph, stream) != 0)
        say(step, "no replay");
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
}

/* endgraph NUMBER: finishes the graph, and launches it once */
static void play_endgraph(const struct step *step) {
    GRAPH(0).last = step->number;
    GRAPH(0).graph = GRAPH(0).begun ? mgpu_rt_graph_end() : NULL;
    if (GRAPH(0).begun)
        play_rerun(step);
}

/* nograph NUMBER: destroys the graph */
static void play_nograph(const struct step *step) {
    if (GRAPH(0).graph != NULL)
        mgpu_rt_graph_destroy(GRAPH(0).graph);
}

const struct step_kind replay_steps[] = {
    {"graph", play_graph}, {"endgraph", play_endgraph},
    {"rerun", play_rerun}, {"nograph", play_nograph},
    {NULL, NULL},
};
