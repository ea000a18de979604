/* Contains the programs of bench/programs, written by hand with direct calls of HIP. The loops
 * contain only the calls that no program can hoist.
 *
 *     hoisted HIP PROGRAM ITERATIONS IMAGE... -- ARGUMENTS
 *
 * HIP is the path of HIP's library, or of NVIDIA's libcuda.so, which the program then calls
 * directly. rounds.h describes the ARGUMENTS; a call makes ITERATIONS iterations. The images belong
 * to the program's modules, in the modules' order. Copies use pageable memory, as in the lowered
 * programs, unless the program registers the memory. */
#include "hip.h"
#include "libcuda.h"
#include "rounds.h"

enum { MAX_KERNELS = 50, ELEMENTS = 1000, BLOCK = 256, SMALL = 64 };

static handle kernels[MAX_KERNELS], streams[2];
static void *device[3];
static float host[3][ELEMENTS];
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

static void forum(void) {
    void *params[1];
    for (long i = 0; i < iterations; i++) {
        launch(kernels[0], 1, 1, streams[0], params);
        CALL(StreamSynchronize, streams[0]);
    }
}

static void many(void) {
    void *params[1];
    for (long i = 0; i < iterations; i++)
        for (int kernel = 0; kernel < MAX_KERNELS; kernel++) {
            launch(kernels[kernel], 1, 1, streams[0], params);
            CALL(StreamSynchronize, streams[0]);
        }
}

static void churn(void) {
    struct memref data = memref(device[0], ELEMENTS);
    int64_t count = ELEMENTS;
    void *params[] = {MEMREF_PARAMS(data), &count};
    for (long i = 0; i < iterations; i++) {
        CALL(MemcpyAsync, device[0], host[0], sizeof host[0], MEMCPY_DEFAULT, streams[0]);
        launch(kernels[0], 4, BLOCK, streams[0], params);
        CALL(MemcpyAsync, host[0], device[0], sizeof host[0], MEMCPY_DEFAULT, streams[0]);
        CALL(StreamSynchronize, streams[0]);
    }
}

static void vecadd(void) {
    struct memref a = memref(device[0], ELEMENTS), b = memref(device[1], ELEMENTS),
                  c = memref(device[2], ELEMENTS);
    int64_t count = ELEMENTS;
    void *params[] = {MEMREF_PARAMS(a), MEMREF_PARAMS(b), MEMREF_PARAMS(c), &count};
    for (long i = 0; i < iterations; i++) {
        CALL(MemcpyAsync, device[0], host[0], sizeof host[0], MEMCPY_DEFAULT, streams[0]);
        CALL(MemcpyAsync, device[1], host[1], sizeof host[1], MEMCPY_DEFAULT, streams[0]);
        CALL(MemsetD32Async, device[2], 0, ELEMENTS, streams[0]);
        launch(kernels[0], 4, BLOCK, streams[0], params);
        CALL(MemcpyAsync, host[2], device[2], sizeof host[2], MEMCPY_DEFAULT, streams[0]);
        CALL(StreamSynchronize, streams[0]);
    }
}

/* Runs two chains; on a single stream, one chain follows the other. */
static void chains(handle left, handle right) {
    struct memref a = memref(device[0], SMALL), b = memref(device[1], SMALL);
    float two = 2, three = 3;
    void *params_a[] = {MEMREF_PARAMS(a), &two}, *params_b[] = {MEMREF_PARAMS(b), &three};
    for (long i = 0; i < iterations; i++) {
        launch(kernels[0], 1, SMALL, left, params_a);
        launch(kernels[0], 1, SMALL, right, params_b);
        CALL(StreamSynchronize, left);
        if (right != left)
            CALL(StreamSynchronize, right);
    }
}

static void overlap(void) {
    chains(streams[0], streams[1]);
}

static void serial(void) {
    chains(streams[0], streams[0]);
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *kernel; /* empty if the program has many kernels */
} programs[] = {
    {"forum", forum, "test_func"},   {"many", many, ""},          {"churn", churn, "increment"},
    {"vecadd", vecadd, "vecadd"},    {"overlap", overlap, "add"}, {"spin", overlap, "spin"},
    {"spin-serial", serial, "spin"},
};

static void load(const char *kernel, char **images) {
    handle modules[MAX_KERNELS];
    int count = 0;
    for (; images[count] && strcmp(images[count], "--") != 0; count++)
        CALL(ModuleLoadData, &modules[count], read_file(images[count]));
    if (*kernel) {
        CALL(ModuleGetFunction, &kernels[0], modules[0], kernel);
        return;
    }
    for (int i = 0; i < MAX_KERNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "kernel%02d", i);
        CALL(ModuleGetFunction, &kernels[i], modules[i / (MAX_KERNELS / count)], name);
    }
}

int main(int argc, char **argv) {
    int images_end = 4;
    while (images_end < argc && strcmp(argv[images_end], "--") != 0)
        images_end++;
    if (images_end >= argc)
        fail("usage", "hoisted HIP PROGRAM ITERATIONS IMAGE... -- ARGUMENTS");
    if (is_libcuda(argv[1]))
        open_libcuda(argv[1]);
    else
        open_hip(argv[1]);
    iterations = atol(argv[3]);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[2]) != 0)
            continue;
        load(programs[i].kernel, argv + 4);
        for (int j = 0; j < 2; j++)
            CALL(StreamCreate, &streams[j]);
        for (int j = 0; j < 3; j++)
            CALL(Malloc, &device[j], sizeof host[j]);
        if (programs[i].run == vecadd)
            for (int j = 0; j < 3; j++)
                CALL(HostRegister, host[j], sizeof host[j], 0);
        return serve(argc - images_end, argv + images_end, programs[i].run);
    }
    fail("no such program", argv[2]);
}
