/* Builds a graph from a function compiled by MLIR, and launches the graph several times. Each
 * launch uses the current content of the host memory.
 *
 * Prints:
 *
 *     a graph of 3 nodes
 *     scaled: 1.5 3 4.5 6
 *     scaled: 15 30 45 60
 *     scaled: 150 300 450 600 */
#include "memref.h"

#include <mgpu_rt.h>
#include <stdio.h>

enum { COUNT = 4, REPLAYS = 3 };

void _mlir_ciface_scale(struct memref *numbers, float factor); /* of scale.mlir */
struct ihipStream_t *mgpuStreamCreate(void); /* lowered programs call this function (docs/abi.md) */
void mgpuStreamSynchronize(struct ihipStream_t *stream);
void mgpuStreamDestroy(struct ihipStream_t *stream);

/* Builds a graph of three nodes: a copy to the device, the kernel, and a copy to the host. No node
 * runs yet. */
static struct mgpu_rt_graph *build(float *numbers) {
    struct memref memref = memref_of(numbers, COUNT);
    if (mgpu_rt_graph_begin() != 0)
        return NULL;
    _mlir_ciface_scale(&memref, 1.5f);
    return mgpu_rt_graph_end();
}

int main(void) {
    float numbers[COUNT]; /* each launch of the graph reads and writes this array */
    struct mgpu_rt_graph *graph = build(numbers);
    if (!graph) /* the library has printed the reason on stderr */
        return 1;
    printf("a graph of %zu nodes\n", mgpu_rt_graph_nodes(graph));

    struct ihipStream_t *stream = mgpuStreamCreate();
    int wrong = 0;
    float unit = 1;
    for (int replay = 0; replay < REPLAYS; replay++, unit *= 10) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = unit * (float)(i + 1);
        if (mgpu_rt_graph_launch(graph, stream) != 0)
            return 1;
        mgpuStreamSynchronize(stream);
        printf("scaled: %g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);
        for (int i = 0; i < COUNT; i++)
            wrong |= numbers[i] != 1.5f * unit * (float)(i + 1);
    }
    mgpuStreamDestroy(stream);
    mgpu_rt_graph_destroy(graph);
    return wrong;
}
