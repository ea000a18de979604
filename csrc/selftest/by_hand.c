/* Programs of bench/programs, written by hand for HIP. Each program makes as many of its calls as
 * possible before its loop. */
#include "hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 1000, BLOCK = 256, COPY_DEFAULT = 4 };

static void *kernel, *stream, *device[4];
static float host[ELEMENTS];
static long iterations;

/* The functions that the loops call, looked up once. */
static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);
static int (*synchronize)(void *);
static int (*copy_async)(void *, const void *, size_t, int, void *);

struct memref {
    void *allocated, *aligned;
    int64_t offset, size, stride;
};

#define MEMREF(data, count) ((struct memref){data, data, 0, count, 1})
#define PARAMS(m) &(m).allocated, &(m).aligned, &(m).offset, &(m).size, &(m).stride

static void launch(unsigned grid, unsigned block, void **params) {
    hip_check(launch_kernel(kernel, grid, 1, 1, block, 1, 1, 0, stream, params, NULL),
              "hipModuleLaunchKernel");
}

static void copy(void *to, const void *from) {
    hip_check(copy_async(to, from, sizeof host, COPY_DEFAULT, stream), "hipMemcpyAsync");
}

static void wait(void) {
    hip_check(synchronize(stream), "hipStreamSynchronize");
}

static void forum(void) {
    void *params[1] = {NULL};
    for (long i = 0; i < iterations; ++i) {
        launch(1, 1, params);
        wait();
    }
}

static void churn(void) {
    struct memref data = MEMREF(device[0], ELEMENTS);
    int64_t count = ELEMENTS;
    void *params[] = {PARAMS(data), &count};
    for (long i = 0; i < iterations; ++i) {
        copy(device[0], host);
        launch(4, BLOCK, params);
        copy(host, device[0]);
        wait();
    }
}

static void layers(void) {
    struct memref data[4];
    int64_t count = ELEMENTS;
    for (int i = 0; i < 4; ++i)
        data[i] = MEMREF(device[i], ELEMENTS);
    for (long i = 0; i < iterations; ++i) {
        copy(device[0], host);
        for (int layer = 0; layer < 3; ++layer) {
            void *params[] = {PARAMS(data[layer]), PARAMS(data[layer + 1]), &count};
            launch(4, BLOCK, params);
        }
        copy(host, device[3]);
        wait();
    }
}

static const struct {
    const char *name, *kernel;
    void (*run)(void);
} loops[] = {
    {"forum", "test_func", forum},
    {"churn", "increment", churn},
    {"layers", "layer", layers},
};

/* Returns the content of the file, followed by a zero byte. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot be read", path);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(size + 1, 1);
    if (!bytes || fread(bytes, 1, size, file) != size)
        fail("cannot be read", path);
    fclose(file);
    return bytes;
}

void (*by_hand(int count, char **words))(void) {
    (void)count;
    iterations = strtol(words[1], NULL, 10);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; ++i) {
        if (strcmp(loops[i].name, words[0]) != 0)
            continue;
        void *module;
        launch_kernel = HIP(ModuleLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned,
                            unsigned, unsigned, unsigned, void *, void **, void **);
        synchronize = HIP(StreamSynchronize, void *);
        copy_async = HIP(MemcpyAsync, void *, const void *, size_t, int, void *);
        hip_check(HIP(ModuleLoadData, void **, const void *)(&module, read_file(words[2])),
                  "hipModuleLoadData");
        hip_check(
            HIP(ModuleGetFunction, void **, void *, const char *)(&kernel, module, loops[i].kernel),
            "hipModuleGetFunction");
        hip_check(HIP(StreamCreate, void **)(&stream), "hipStreamCreate");
        for (int buffer = 0; buffer < 4; ++buffer)
            hip_check(HIP(Malloc, void **, size_t)(&device[buffer], sizeof host), "hipMalloc");
        return loops[i].run;
    }
    fail("no loop by hand", words[0]);
}
