/* Replays allocation traces (bench/traces) in three ways: through the runtime, by hipMalloc and
 * hipFree as stock does, and by hipMallocAsync and hipFreeAsync.
 *
 *     replay HIP RUNTIME ROUNDS REPEATS TRACE
 *
 * Prints JSON: for each way and each round, the µs of one replay of the trace. A trace has lines of
 * `a SLOT BYTES`, `f SLOT` and `s`: allocate, free, synchronise. */
#include "native.h"

#include <stdbool.h>
#include <unistd.h>

enum { MAX_STEPS = 4096, MAX_SLOTS = 1024, WARMUP = 2 };

struct step {
    char kind;
    int slot;
    size_t bytes;
};

struct way {
    const char *name;
    void *(*allocate)(size_t bytes);
    void (*release)(void *address);
};

static struct step steps[MAX_STEPS];
static int step_count;
static void *slots[MAX_SLOTS], *stream;

static int (*hip_malloc)(void **address, size_t bytes);
static int (*hip_free)(void *address);
static int (*hip_malloc_async)(void **address, size_t bytes, void *stream);
static int (*hip_free_async)(void *address, void *stream);
static void *(*mgpu_alloc)(uint64_t bytes, void *stream, bool shared);
static void (*mgpu_free)(void *address, void *stream);
static void (*synchronise)(void *stream);

static void check(int error, const char *what) {
    if (error != 0)
        fail("HIP failed", what);
}

static void *allocate_runtime(size_t bytes) {
    return mgpu_alloc(bytes, stream, false);
}

static void release_runtime(void *address) {
    mgpu_free(address, stream);
}

static void *allocate_stock(size_t bytes) {
    void *address;
    check(hip_malloc(&address, bytes), "hipMalloc");
    return address;
}

static void release_stock(void *address) {
    check(hip_free(address), "hipFree");
}

static void *allocate_async(size_t bytes) {
    void *address;
    check(hip_malloc_async(&address, bytes, stream), "hipMallocAsync");
    return address;
}

static void release_async(void *address) {
    check(hip_free_async(address, stream), "hipFreeAsync");
}

static void read_trace(const char *path) {
    FILE *file = fopen(path, "r");
    char line[128];
    if (!file)
        fail("cannot read", path);
    while (fgets(line, sizeof line, file)) {
        struct step *step = &steps[step_count];
        const int words = sscanf(line, "%c %d %zu", &step->kind, &step->slot, &step->bytes);
        if (words < 1 || line[0] == '#')
            continue;
        if (++step_count == MAX_STEPS || step->slot >= MAX_SLOTS)
            fail("too long", path);
    }
    fclose(file);
}

static void replay(const struct way *way) {
    for (const struct step *step = steps; step < steps + step_count; step++) {
        if (step->kind == 'a')
            slots[step->slot] = way->allocate(step->bytes);
        else if (step->kind == 'f')
            way->release(slots[step->slot]);
        else
            synchronise(stream);
    }
}

static double one_round(const struct way *way, long repeats) {
    const uint64_t begin = now_ns();
    for (long i = 0; i < repeats; i++)
        replay(way);
    return (double)(now_ns() - begin) / 1e3 / (double)repeats;
}

int main(int argc, char **argv) {
    static const struct way ways[] = {{"mgpu_rt", allocate_runtime, release_runtime},
                                      {"stock", allocate_stock, release_stock},
                                      {"async", allocate_async, release_async}};
    enum { WAYS = sizeof ways / sizeof *ways };
    if (argc != 6)
        fail("usage", "replay HIP RUNTIME ROUNDS REPEATS TRACE");
    void *hip = open_library(argv[1]), *runtime = open_library(argv[2]);
    const long rounds = atol(argv[3]), repeats = atol(argv[4]);
    *(void **)&hip_malloc = symbol(hip, "hipMalloc");
    *(void **)&hip_free = symbol(hip, "hipFree");
    *(void **)&hip_malloc_async = symbol(hip, "hipMallocAsync");
    *(void **)&hip_free_async = symbol(hip, "hipFreeAsync");
    *(void **)&mgpu_alloc = symbol(runtime, "mgpuMemAlloc");
    *(void **)&mgpu_free = symbol(runtime, "mgpuMemFree");
    *(void **)&synchronise = symbol(runtime, "mgpuStreamSynchronize");
    void *(*create)(void);
    *(void **)&create = symbol(runtime, "mgpuStreamCreate");
    read_trace(argv[5]);
    stream = create();
    double *times = calloc((size_t)rounds * WAYS, sizeof *times);
    for (long round = -WARMUP; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            const double time = one_round(&ways[way], repeats);
            if (round >= 0)
                times[round * WAYS + way] = time;
        }
    for (int way = 0; way < WAYS; way++) {
        printf("%s\"%s\": [", way ? ", " : "{", ways[way].name);
        for (long round = 0; round < rounds; round++)
            printf("%s%.4f", round ? ", " : "", times[round * WAYS + way]);
        printf("]");
    }
    puts("}");
    fflush(stdout);
    _exit(0); /* skips HIP's exit, where HIP 5.2.3 hangs on a stream with blocks in the pool */
}
