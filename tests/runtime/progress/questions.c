/* Calls functions of HIP while a kernel waits for the host, and prints what each call does:
 *
 *     questions LIBAMDHIP64 IMAGE PATIENCE questions|all [SITUATION:CALL...]
 *
 * The program prints a line for each situation and call: "situation:call returns". "waits" replaces
 * "returns" if the call has not returned after PATIENCE milliseconds. "delays" means that the call
 * has returned, but that later work on a third stream is not done after PATIENCE milliseconds. The
 * program then lets the kernel end. For the calls that the last words name, the patience is at most
 * SHORT milliseconds. With "questions" the program makes only the calls that change nothing. */
#include "waiting.h"

enum { SHORT = 400, BYTES = 4096, NON_BLOCKING = 1, NO_TIMES = 2, MANAGED_GLOBAL = 1 };
enum { DEFAULT_KIND = 4, WARP_SIZE = 87, BUFFER_ID = 7, RELAXED = 2 };

static void check(const char *what, int error) {
    if (error != 0) {
        fprintf(stderr, "%s: error %d\n", what, error);
        exit(2);
    }
}
static function hip(const char *name) {
    return (function)(uintptr_t)dlsym(library, name);
}
#define HIP(name, ...) check(#name, (int)(intptr_t)hip(#name)(__VA_ARGS__))

/* ---- the objects of a situation ---- */

static void *busy, *asked;   /* the stream of that kernel; the stream that a call names */
static void *bystander;      /* a stream that no call names */
static void *done, *pending; /* events: complete; recorded behind the kernel */
static void *block, *spare, *pinned, *managed, *module, *until, *one;
static char pageable[BYTES], *registered;

static void launch(void *kernel, void *data, void *stream) {
    int64_t zero = 0, count = 4, stride = 1;
    void *arguments[] = {&data, &data, &zero, &count, &stride};
    HIP(hipModuleLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void make_objects(void) {
    HIP(hipModuleLoadData, &module, image);
    HIP(hipModuleGetFunction, &until, module, "until");
    HIP(hipModuleGetFunction, &one, module, "one");
    HIP(hipHostMalloc, (void **)&flag, (size_t)BYTES, 0);
    HIP(hipHostMalloc, &pinned, (size_t)BYTES, 0);
    HIP(hipMalloc, &block, (size_t)BYTES);
    HIP(hipMallocManaged, &managed, (size_t)BYTES, MANAGED_GLOBAL);
    registered = aligned_alloc(BYTES, BYTES);
    HIP(hipHostRegister, registered, (size_t)BYTES, 0);
    HIP(hipEventCreateWithFlags, &done, NO_TIMES);
    HIP(hipEventCreateWithFlags, &pending, NO_TIMES);
}

/* ---- the calls ---- */

static int number;
static size_t size;
static uint64_t wide[512];
static char unknown[BYTES];
static void *pointer, *fresh;

static void copy(void *to, const void *from) {
    (void)hip("hipMemcpyAsync")(to, from, (size_t)64, DEFAULT_KIND, asked);
}

#define ASK(name, ...) DO(name, (void)hip(#name)(__VA_ARGS__))
#define DO(name, ...)                                                                              \
    static void call_##name(void) {                                                                \
        __VA_ARGS__;                                                                               \
    }
#include "questions.def"
#undef DO

/* Work on a stream that has nothing to do with the kernel or with the call. */
static void work_elsewhere(void) {
    launch(one, pinned, bystander);
    HIP(hipStreamSynchronize, bystander);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
#define DO(name, ...) {#name, call_##name},
#include "questions.def"
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- situations: which stream has the kernel, and which stream the calls name ---- */

static void begin(void) {
    HIP(hipDeviceSynchronize);
    launch(one, block, busy);
    HIP(hipEventRecord, done, busy);
    HIP(hipDeviceSynchronize);
    *flag = 0;
    launch(until, (void *)flag, busy);
    HIP(hipEventRecord, pending, busy);
}

static int count = CALLS;

static void play(const char *situation, bool null_is_busy, bool kernel_blocks, int which) {
    void *other, *third;
    HIP(hipStreamCreateWithFlags, &busy, kernel_blocks ? 0 : NON_BLOCKING);
    HIP(hipStreamCreate, &other);
    HIP(hipStreamCreateWithFlags, &third, NON_BLOCKING);
    if (null_is_busy)
        busy = NULL;
    void *names[] = {NULL, busy, other, third};
    asked = names[which];
    HIP(hipStreamCreate, &bystander);
    make_objects();
    launch(one, block, bystander);
    launch(one, block, other);
    launch(one, block, NULL);
    begin();
    for (int i = 0; i < count; i++) {
        if (*flag)
            begin();
        char name[128];
        snprintf(name, sizeof name, "%s:%s", situation, calls[i].name);
        time_call(name, calls[i].call, null_is_busy ? NULL : work_elsewhere, SHORT);
    }
    *flag = 1;
    HIP(hipDeviceSynchronize);
}

static const struct {
    const char *name;
    bool null_is_busy, kernel_blocks;
    int which;
} situations[] = {
    {"stream:null", false, true, 0},        {"stream:itself", false, true, 1},
    {"stream:other", false, true, 2},       {"stream:nonblocking", false, true, 3},
    {"null:null", true, true, 0},           {"null:other", true, true, 2},
    {"null:nonblocking", true, true, 3},    {"nonblocking:null", false, false, 0},
    {"nonblocking:other", false, false, 2},
};

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    library = open_library(argv[1], RTLD_NOW);
    give_bodies();
    read_image(argv[2]);
    start_caller();
    patience = atol(argv[3]);
    if (strcmp(argv[4], "questions") == 0)
        for (count = 0; calls[count].call != call_event; count++)
            continue;
    known = argv + 5;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++)
        play(situations[i].name, situations[i].null_is_busy, situations[i].kernel_blocks,
             situations[i].which);
    puts("done");
    return 0;
}
