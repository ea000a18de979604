/* Contains the programs of bench/programs, written by hand with direct calls of HIP. The loops
 * contain only the calls that no program can hoist.
 *
 *     hoisted HIP PROGRAM ITERATIONS IMAGE
 *
 * HIP is the path of HIP's library, and IMAGE is the program's module. A call (rounds.h) makes
 * ITERATIONS iterations. Copies use pageable memory, as in the lowered programs. */
#include "hip.h"
#include "rounds.h"

#include <stdbool.h>

enum { MOST_KERNELS = 3, BUFFERS = 6, BLOCK = 256, SMALL = 64, ELEMENTS = 1000 };
enum { FORKED = 16 * BLOCK, FORKED_LARGE = 1 << 22 }; /* elements of forkjoin's buffers */
enum { FEWEST_ROWS = 64, MOST_ROWS = 8192 };          /* of grow, each with BLOCK elements */
enum { GROWN = MOST_ROWS * BLOCK };
enum { LONGEST = 256 * BLOCK }; /* batch of ragged, in elements */

static handle kernels[MOST_KERNELS], streams[2], events[2];
static void *device[BUFFERS]; /* parts of one allocation, each as large as the program ever needs */
static float host[2][FORKED_LARGE];
static long iterations;

/* The descriptor of a one-dimensional memref, in the layout of kernel arguments. */
struct memref {
    void *allocated, *aligned;
    int64_t offset, size, stride;
};

static struct memref memref(void *data, int64_t size) {
    return (struct memref){data, data, 0, size, 1};
}

#define MEMREF_PARAMS(m) &(m).allocated, &(m).aligned, &(m).offset, &(m).size, &(m).stride

static void launch(handle kernel, unsigned grid, unsigned block, handle stream, void **params) {
    CALL(ModuleLaunchKernel, kernel, grid, 1, 1, block, 1, 1, 0, stream, params, NULL);
}

static void copy(void *to, const void *from, size_t elements, handle stream) {
    CALL(MemcpyAsync, to, from, elements * sizeof(float), MEMCPY_DEFAULT, stream);
}

static void forum(void) {
    void *params[1];
    for (long i = 0; i < iterations; i++) {
        launch(kernels[0], 1, 1, streams[0], params);
        CALL(StreamSynchronize, streams[0]);
    }
}

static void churn(void) {
    struct memref data = memref(device[0], ELEMENTS);
    int64_t count = ELEMENTS;
    void *params[] = {MEMREF_PARAMS(data), &count};
    for (long i = 0; i < iterations; i++) {
        copy(device[0], host[0], ELEMENTS, streams[0]);
        launch(kernels[0], 4, BLOCK, streams[0], params);
        copy(host[0], device[0], ELEMENTS, streams[0]);
        CALL(StreamSynchronize, streams[0]);
    }
}

static void spin(void) {
    struct memref a = memref(device[0], SMALL), b = memref(device[1], SMALL);
    float two = 2, three = 3;
    void *params_a[] = {MEMREF_PARAMS(a), &two}, *params_b[] = {MEMREF_PARAMS(b), &three};
    for (long i = 0; i < iterations; i++) {
        launch(kernels[0], 1, SMALL, streams[0], params_a);
        launch(kernels[0], 1, SMALL, streams[1], params_b);
        CALL(StreamSynchronize, streams[0]);
        CALL(StreamSynchronize, streams[1]);
    }
}

/* Makes `after` wait for the work on `before` so far. */
static void join(handle before, handle after, handle event) {
    CALL(EventRecord, event, before);
    CALL(StreamWaitEvent, after, event, 0);
}

static void fork_and_join(int64_t size, bool wait) {
    struct memref x = memref(device[0], size), y = memref(device[1], size);
    float two = 2, three = 3;
    void *params_x[] = {MEMREF_PARAMS(x), &two}, *params_y[] = {MEMREF_PARAMS(y), &three};
    void *params[] = {MEMREF_PARAMS(x), MEMREF_PARAMS(y)};
    for (long i = 0; i < iterations; i++) {
        copy(device[0], host[0], size, streams[0]);
        launch(kernels[0], FORKED / BLOCK, BLOCK, streams[0], params_x);
        copy(device[1], host[0], size, streams[1]);
        launch(kernels[0], FORKED / BLOCK, BLOCK, streams[1], params_y);
        join(streams[1], streams[0], events[0]);
        launch(kernels[1], FORKED / BLOCK, BLOCK, streams[0], params);
        copy(host[1], device[0], size, streams[0]);
        if (wait)
            CALL(StreamSynchronize, streams[0]);
        else
            join(streams[0], streams[1], events[1]); /* before the next copy to y */
    }
}

static void forkjoin(void) {
    fork_and_join(FORKED, true);
}

static void forkjoin_nowait(void) {
    fork_and_join(FORKED_LARGE, false);
}

/* Grows keys from device[0] to device[1] and back, and values likewise. */
static void grow(void) {
    static int64_t rows = FEWEST_ROWS;
    if (rows + iterations > MOST_ROWS)
        rows = FEWEST_ROWS;
    const int64_t end = rows + iterations;
    struct memref total = memref(device[5], BLOCK);
    for (int i = 0; i < 4; i += 2)
        CALL(MemsetD32Async, device[i], 0, rows * BLOCK, streams[0]);
    CALL(MemsetD32Async, device[5], 0, BLOCK, streams[0]);
    CALL(StreamSynchronize, streams[0]);
    for (int new = 1; rows < end; rows++, new = !new) {
        int64_t count = rows * BLOCK;
        struct memref old_keys = memref(device[!new], count);
        struct memref old_values = memref(device[2 + !new], count);
        struct memref keys = memref(device[new], count + BLOCK);
        struct memref values = memref(device[2 + new], count + BLOCK);
        struct memref scores = memref(device[4], count + BLOCK);
        void *extend_keys[] = {MEMREF_PARAMS(old_keys), MEMREF_PARAMS(keys), &count};
        void *extend_values[] = {MEMREF_PARAMS(old_values), MEMREF_PARAMS(values), &count};
        void *score[] = {MEMREF_PARAMS(keys), MEMREF_PARAMS(values), MEMREF_PARAMS(scores)};
        void *add_up[] = {MEMREF_PARAMS(scores), MEMREF_PARAMS(total), &count};
        launch(kernels[0], rows + 1, BLOCK, streams[0], extend_keys);
        launch(kernels[0], rows + 1, BLOCK, streams[0], extend_values);
        launch(kernels[1], rows + 1, BLOCK, streams[0], score);
        launch(kernels[2], 1, BLOCK, streams[0], add_up);
        CALL(StreamSynchronize, streams[0]);
    }
    copy(host[0], device[5], BLOCK, streams[0]);
    CALL(StreamSynchronize, streams[0]);
}

static void ragged(void) {
    static uint32_t state = 1;
    for (long i = 0; i < iterations; i++) {
        state = state * 1664525 + 1013904223;
        const unsigned rows = (state >> 24) + 1;
        int64_t count = (int64_t)rows * BLOCK;
        struct memref batch = memref(device[0], count), wide = memref(device[1], 4 * count);
        void *widen[] = {MEMREF_PARAMS(batch), MEMREF_PARAMS(wide), &count};
        void *narrow[] = {MEMREF_PARAMS(wide), MEMREF_PARAMS(batch), &count};
        copy(device[0], host[0], count, streams[0]);
        launch(kernels[0], rows, BLOCK, streams[0], widen);
        launch(kernels[1], rows, BLOCK, streams[0], narrow);
        copy(host[0], device[0], count, streams[0]);
        CALL(StreamSynchronize, streams[0]);
    }
}

static const struct program {
    const char *name;
    void (*run)(void);
    const char *kernels[MOST_KERNELS];
    size_t elements;     /* of the largest buffer on the device */
    const float *result; /* the number that the lowered program prints first */
} programs[] = {
    {"forum", forum, {"test_func"}, 0, NULL},
    {"churn", churn, {"increment"}, ELEMENTS, host[0]},
    {"spin", spin, {"spin"}, SMALL, NULL},
    {"forkjoin", forkjoin, {"scale", "join"}, FORKED, host[1]},
    {"forkjoin-nowait", forkjoin_nowait, {"scale", "join"}, FORKED_LARGE, host[1]},
    {"grow", grow, {"extend", "score", "add_up"}, GROWN, host[0]},
    {"ragged", ragged, {"widen", "narrow"}, 4 * LONGEST, host[0]},
};

static void prepare(const struct program *program, const char *image) {
    handle module;
    CALL(ModuleLoadData, &module, read_file(image));
    for (int i = 0; i < MOST_KERNELS && program->kernels[i]; i++)
        CALL(ModuleGetFunction, &kernels[i], module, program->kernels[i]);
    for (int i = 0; i < 2; i++) {
        CALL(StreamCreate, &streams[i]);
        CALL(EventCreateWithFlags, &events[i], EVENT_DISABLE_TIMING);
    }
    const size_t bytes = (program->elements * sizeof(float) + 255) / 256 * 256;
    if (bytes)
        CALL(Malloc, &device[0], BUFFERS * bytes);
    for (int i = 1; i < BUFFERS; i++)
        device[i] = (char *)device[0] + i * bytes;
    if (program->run == forkjoin || program->run == forkjoin_nowait)
        for (size_t i = 0; i < program->elements; i++)
            host[0][i] = 1;
}

int main(int argc, char **argv) {
    if (argc != 5)
        fail("usage", "hoisted HIP PROGRAM ITERATIONS IMAGE");
    open_hip(argv[1]);
    iterations = atol(argv[3]);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[2]) != 0)
            continue;
        prepare(&programs[i], argv[4]);
        const int status = serve(programs[i].run);
        if (getenv("BENCH_RESULT") && programs[i].result)
            fprintf(stderr, "%g\n", (double)*programs[i].result);
        return status;
    }
    fail("no such program", argv[2]);
}
