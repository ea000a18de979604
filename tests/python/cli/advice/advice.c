/* Makes a call that the library refuses with advice, or the call that the advice names. The first
 * argument names the call, and a second argument says to follow the advice. */
#include "mgpu_rt.h"
#include "program.h"

enum { BLOCK = 65536 };

static void *stream, *block;

/* ---- a graph that copies from memory that is registered later ---- */

static struct mgpu_rt_graph *graph_of_copies(void *host) {
    mgpu_rt_graph_begin();
    mgpuMemcpy(block, host, 4096, stream);
    return mgpu_rt_graph_end();
}

static int graph(bool again) {
    char *host = aligned_alloc(4096, 4096);
    struct mgpu_rt_graph *built = graph_of_copies(memset(host, 7, 4096));
    mgpuMemHostRegister(host, 4096);
    if (again) {
        mgpu_rt_graph_destroy(built);
        built = graph_of_copies(host);
    }
    const int failed = mgpu_rt_graph_launch(built, stream);
    char back[4096] = {0};
    mgpuMemcpy(back, block, sizeof back, stream);
    mgpuStreamSynchronize(stream);
    printf("%s %d\n", failed ? "failed" : "copied", back[4095]);
    return 0;
}

static int tensor_map(void) {
    _Alignas(64) char map[128];
    const uint64_t sizes[] = {64, 64}, strides[] = {256};
    const uint32_t box[] = {16, 16}, steps[] = {1, 1};
    mgpuTensorMapEncodeTiled(map, 7, 2, block, sizes, strides, box, steps, 0, 0, 0, 0);
    return 0;
}

static int event(bool created) {
    mgpuEventRecord(created ? mgpuEventCreate() : stream, stream);
    return 0;
}

static int copy(bool fits) {
    static char host[1 << 20];
    mgpuMemcpy(host, block, fits ? BLOCK : sizeof host, stream);
    mgpuStreamSynchronize(stream);
    return 0;
}

/* Looks the function up, so that the library cannot see that the program asks for times. */
static int elapsed(bool asked) {
    struct mgpu_elapsed (*const between)(void *, void *, void *) =
        dlsym(RTLD_DEFAULT, "mgpuEventElapsedTime");
    if (asked)
        between(NULL, NULL, NULL);
    void *const start = mgpuEventCreate(), *const stop = mgpuEventCreate();
    mgpuEventRecord(start, stream);
    mgpuEventRecord(stop, stream);
    mgpuStreamSynchronize(stream);
    if (between(start, stop, NULL).milliseconds >= 0)
        puts("the time is known");
    return 0;
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    const bool follows = count > 2;
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BLOCK, stream, false);
    if (strcmp(name, "graph") == 0)
        return graph(follows);
    if (strcmp(name, "copy") == 0)
        return copy(follows);
    if (strcmp(name, "elapsed") == 0)
        return elapsed(follows);
    if (strcmp(name, "tensor-map") == 0)
        return tensor_map();
    return strcmp(name, "event") == 0 ? event(follows) : 2;
}
