/* emulator HIP IMAGE LONG DRIVER ROUNDS: prints times of launches on the software device, as JSON.
 *
 * IMAGE contains the kernels of kernels/emulator.mlir. LONG contains a kernel of many instructions;
 * the kernel's first launch shows the cost of decoding. DRIVER is the library that counts
 * instructions. */
#include "hip.h"

enum { SIZE = 65536, STEPS = 40, DIM = 256, TILE = 16, COPIES = 32 };

static uint64_t (*instructions)(void);
static handle stream;

static handle load(const char *image, const char *name) {
    handle module, function;
    CALL(ModuleLoadData, &module, image);
    CALL(ModuleGetFunction, &function, module, name);
    return function;
}

/* A launch: the kernel, the sizes of grid and block, and the arguments. */
struct launch {
    handle function;
    unsigned grid[2], block[2];
    void **params;
};

struct took {
    double ns;
    uint64_t instructions;
};

static struct took run(const struct launch *l) {
    uint64_t counted = instructions(), start = now_ns();
    CALL(ModuleLaunchKernel, l->function, l->grid[0], l->grid[1], 1, l->block[0], l->block[1], 1, 0,
         stream, l->params, NULL);
    CALL(StreamSynchronize, stream);
    return (struct took){(double)(now_ns() - start), instructions() - counted};
}

static void print(const char *name, const struct launch *l, long rounds) {
    run(l);
    printf("\"%s\": {\"ns\": [", name);
    struct took took = {0};
    for (long n = 0; n < rounds; n++) {
        took = run(l);
        printf("%s%.0f", n ? ", " : "", took.ns);
    }
    printf("], \"instructions\": %llu},\n", (unsigned long long)took.instructions);
}

/* Each copy of the image is at another address, so that the device decodes the code again. */
static void print_first_launches(const char *image, void *memory) {
    void *params[] = {&memory, &memory, &(int64_t){0}, &(int64_t){SIZE}, &(int64_t){1}};
    printf("\"first\": [");
    for (int n = 0; n < COPIES; n++) {
        struct launch l = {load(image, "straight"), {1, 1}, {64, 1}, params};
        double first = run(&l).ns, later = run(&l).ns;
        for (int again = 0; again < 5; again++) {
            double ns = run(&l).ns;
            later = ns < later ? ns : later;
        }
        printf("%s%.0f", n ? ", " : "", first - later);
    }
    printf("]");
}

int main(int argc, char **argv) {
    if (argc != 6)
        fail("usage", "emulator HIP IMAGE LONG DRIVER ROUNDS");
    int (*set_device_flags)(unsigned flags);
    open_hip(argv[1]);
    *(void **)&set_device_flags = symbol(open_library(argv[1]), "hipSetDeviceFlags");
    *(void **)&instructions = symbol(open_library(argv[4]), "softgpu_instructions");
    long rounds = atol(argv[5]);

    /* By default the waiting thread spins and occupies a core that the device's threads need. */
    enum { BLOCKING_SYNC = 4 };
    check(set_device_flags(BLOCKING_SYNC), "to wait asleep");
    void *memory[3];
    float *data = malloc(SIZE * sizeof *data);
    if (!data)
        fail("no memory", "for the input");
    for (int i = 0; i < SIZE; i++)
        data[i] = (float)(i % 251) * 0.125f;
    for (int n = 0; n < 3; n++) {
        CALL(Malloc, &memory[n], SIZE * sizeof *data);
        CALL(Memcpy, memory[n], data, SIZE * sizeof *data, MEMCPY_DEFAULT);
    }
    CALL(StreamCreate, &stream);

    char *image = read_file(argv[2]);
    int64_t zero = 0, one = 1, size = SIZE, dim = DIM;
    int32_t steps = STEPS;
    void **m[] = {&memory[0], &memory[1], &memory[2]};
#define ROW(n) m[n], m[n], &zero, &size, &one
#define MATRIX(n) m[n], m[n], &zero, &dim, &dim, &dim, &one
    void *rows[] = {ROW(0), ROW(1), ROW(2)}, *matrices[] = {MATRIX(0), MATRIX(1), MATRIX(2)};
    void *loop[] = {ROW(2), &steps};
    struct launch vecadd = {load(image, "vecadd"), {SIZE / 256, 1}, {256, 1}, rows};
    struct launch matmul = {
        load(image, "matmul"), {DIM / TILE, DIM / TILE}, {TILE, TILE}, matrices};
    struct launch arithmetic = {load(image, "arithmetic"), {64, 1}, {256, 1}, loop};

    printf("{");
    print("vecadd", &vecadd, 8 * rounds);
    print("matmul", &matmul, rounds);
    print("arithmetic", &arithmetic, 8 * rounds);
    print_first_launches(read_file(argv[3]), memory[2]);
    printf("}\n");
    return 0;
}
