/* Builds graphs of a program's pass, and replays the last graph. A program builds graphs only if
 * BENCH_GRAPH is set. The process's runtime builds the graphs: this project's library, or
 * bench/stock/byhand.c. */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "native.h"

#include <stdbool.h>

enum { BUILDINGS = 9 };

static struct {
    int (*begin)(void);
    void *(*end)(void);
    int (*launch)(void *graph, void *stream);
    void (*destroy)(void *graph);
    void (*synchronize)(void *stream);
    void *stream, *built;
    uint64_t begun, taken[BUILDINGS];
    int count; /* of buildings */
} graph;

static inline bool wants_graph(void) {
    return getenv("BENCH_GRAPH") != NULL;
}

static inline void open_graphs(void) {
    void *(*create)(void);
    *(void **)&graph.begin = symbol(RTLD_DEFAULT, "mgpu_rt_graph_begin");
    *(void **)&graph.end = symbol(RTLD_DEFAULT, "mgpu_rt_graph_end");
    *(void **)&graph.launch = symbol(RTLD_DEFAULT, "mgpu_rt_graph_launch");
    *(void **)&graph.destroy = symbol(RTLD_DEFAULT, "mgpu_rt_graph_destroy");
    *(void **)&graph.synchronize = symbol(RTLD_DEFAULT, "mgpuStreamSynchronize");
    *(void **)&create = symbol(RTLD_DEFAULT, "mgpuStreamCreate");
    graph.stream = create();
}

/* Destroys the previous graph and begins a graph; the calls until end_building become the graph's
 * nodes. */
static inline void begin_building(void) {
    if (graph.built)
        graph.destroy(graph.built);
    graph.begun = now_ns();
    if (graph.begin() != 0)
        fail("no graph", "begin");
}

static inline void end_building(void) {
    graph.built = graph.end();
    graph.taken[graph.count++] = now_ns() - graph.begun;
    if (!graph.built)
        fail("no graph", "end");
}

static inline int compare_times(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Returns the median of the nanoseconds to build and instantiate a graph. */
static inline uint64_t building_time(void) {
    qsort(graph.taken, BUILDINGS, sizeof *graph.taken, compare_times);
    return graph.taken[BUILDINGS / 2];
}

static inline void replay_graph(void) {
    if (graph.launch(graph.built, graph.stream) != 0)
        fail("no graph", "launch");
    graph.synchronize(graph.stream);
}

#endif
