/* Plays the situations, and prints the state after each situation.
 *
 *     program FOLDER PENDING FIRST
 *
 * FOLDER holds the images. PENDING names the error that the program leaves before each call: none,
 * device or memory. FIRST is the first situation to play. If a situation ends the process, this end
 * is the situation's result. */
#include "program.h"

#pragma weak mgpuModuleLoadJIT /* which not every runtime has */

enum { KIB = 1 << 10 };

static const char *current, *folder, *pending;

static _Noreturn void give_up(const char *what) {
    perror(what);
    exit(2);
}

/* Causes the error that PENDING names, and marks the lines that the call prints on stderr. */
static void situation_before(void) {
    void *address;
    HIP(hipGetLastError, void)();
    if (strcmp(pending, "device") == 0)
        HIP(hipSetDevice, int)(99);
    else if (strcmp(pending, "memory") == 0)
        HIP(hipMalloc, void **, size_t)(&address, (size_t)1 << 50);
    fprintf(stderr, "\n[%s\n", current);
}

static void situation_after(void) {
    const int peeked = HIP(hipPeekAtLastError, void)(), got = HIP(hipGetLastError, void)();
    fputs("]\n", stderr);
    printf("%s %d %d\n", current, peeked, got);
    fflush(stdout);
}

/* Returns the bytes of a file of the folder, in separate memory. If `at_end` is true, the memory
 * behind the bytes is unreadable. */
static void *situation_file(const char *name, bool at_end) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        give_up(path);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file), page = 4096;
    const size_t room = (size + page - 1) / page * page + page;
    char *area =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = at_end ? area + room - size : area;
    rewind(file);
    if (area == MAP_FAILED || fread(at, 1, size, file) != size ||
        mprotect(area + room, page, PROT_NONE) != 0)
        give_up(path);
    fclose(file);
    return at;
}

static const char kernel_name[] = "test_func";
static char host[64 * KIB];
static uint64_t nothing[512]; /* an address that is neither a handle nor device memory */
static char pages[4][4096] __attribute__((aligned(4096)));
#define UNKNOWN(type) ((type)(void *)nothing)

/* Returns an image that was not loaded before: a valid code object with another number in the
 * header's padding. */
static void *new_image(void) {
    static uint32_t number;
    char *image = situation_file("good", false);
    ++number;
    memcpy(image + 10, &number, sizeof number);
    return image;
}

static hipModule_t load(void *image) {
    return mgpuModuleLoad(image, 0);
}

static hipModule_t loaded(void) {
    return load(new_image());
}

static hipModule_t unloaded(void) {
    hipModule_t module = loaded();
    mgpuModuleUnload(module);
    return module;
}

static hipFunction_t kernel(void) {
    static hipFunction_t function;
    if (function == NULL)
        function = mgpuModuleGetFunction(loaded(), kernel_name);
    return function;
}

static hipStream_t stream_new(void) {
    return mgpuStreamCreate();
}

static hipStream_t stream_destroyed(void) {
    hipStream_t stream = mgpuStreamCreate();
    mgpuStreamDestroy(stream);
    return stream;
}

static hipEvent_t event_destroyed(void) {
    hipEvent_t event = mgpuEventCreate();
    mgpuEventDestroy(event);
    return event;
}

static void *block_of(size_t bytes) {
    return mgpuMemAlloc(bytes, NULL, false);
}

static void give_back(void *block) {
    mgpuMemFree(block, NULL);
}

static void launch(hipFunction_t function, intptr_t grid, intptr_t block, int32_t shared,
                   hipStream_t stream) {
    mgpuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, NULL, NULL, 0);
}

static void launch_cooperatively(hipFunction_t function, intptr_t grid, intptr_t block,
                                 hipStream_t stream) {
    mgpuLaunchKernelCooperative(function, grid, 1, 1, 0, 0, 0, block, 1, 1, 0, stream, NULL, NULL);
}

static void *block_on(hipStream_t *stream) {
    *stream = stream_new();
    return mgpuMemAlloc(KIB, *stream, false);
}

static void release(void *block, hipStream_t stream) {
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

static struct mgpu_memref_float row_of(void *memory, int64_t bytes) {
    return (struct mgpu_memref_float){memory, memory, 0, bytes, 1};
}

/* ---- the situations ---- */

#define ROW_IF(name, before, condition, call, after)                                               \
    static void name(void) {                                                                       \
        before;                                                                                    \
        if (condition) {                                                                           \
            situation_before();                                                                    \
            call;                                                                                  \
            situation_after();                                                                     \
        }                                                                                          \
        after;                                                                                     \
    }
#define ROW(name, before, call, after) ROW_IF(name, before, true, call, after)
#define WRONG_IMAGE(name)                                                                          \
    ROW(load_##name, void *image = situation_file(#name, false), load(image), )                    \
    ROW(load_##name##_at_the_end, void *image = situation_file(#name, true), load(image), )
#include "situations.def"
#undef ROW_IF
#undef WRONG_IMAGE

static const struct {
    const char *name;
    void (*run)(void);
} all[] = {
#define ROW_IF(name, before, condition, call, after) {#name, name},
#define WRONG_IMAGE(name)                                                                          \
    {"load_" #name, load_##name}, {"load_" #name "_at_the_end", load_##name##_at_the_end},
#include "situations.def"
};
enum { COUNT = sizeof all / sizeof *all };

int main(int argc, char **argv) {
    const struct rlimit no_core = {0, 0};
    int version = 0;
    if (argc != 4)
        return 2;
    setrlimit(RLIMIT_CORE, &no_core);
    folder = argv[1];
    pending = argv[2];
    HIP(hipRuntimeGetVersion, int *)(&version);
    printf("hip %d\n", version);
    for (int i = atoi(argv[3]); i < COUNT; ++i) {
        current = all[i].name;
        printf("%d %s\n", i, current);
        fflush(stdout);
        all[i].run();
        HIP(hipDeviceSynchronize, void)();
        HIP(hipGetLastError, void)();
    }
    puts("done");
    fflush(stdout);
    _exit(0); /* skips exit handlers and destructors, which this program does not test */
}
