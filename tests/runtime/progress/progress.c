/* Calls every mgpu function while a kernel waits for the host, and prints what each call does:
 *
 *     progress RUNTIME LIBAMDHIP64 IMAGE SITUATIONS PATIENCE [SITUATION:CALL...]
 *
 * SITUATIONS is a list such as "held,capture". The program prints a line for each situation and
 * call: "situation:call returns". "waits" replaces
 * "returns" if the call has not returned after PATIENCE milliseconds. "delays" means that the call
 * has returned, but that later work on another stream is not done after PATIENCE milliseconds. The
 * program then lets the kernel end, and launches it again before the next call. For the calls that
 * the last words name, the patience is at most SHORT milliseconds. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HIP's functions have many types; a call through a pointer without a prototype suits integers and
 * pointers. */
typedef void *(*function)();

static void *library; /* HIP */
static char image[1 << 20];
static volatile int *flag; /* the kernel `until` ends when this is not 0 */

static void *open_library(const char *path, int flags) {
    void *opened = dlopen(path, flags);
    if (!opened) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return opened;
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fread(image, 1, sizeof image, file) == 0)
        exit(2);
    fclose(file);
}

/* Gives the kernels their bodies on the stub of HIP. */
static void until_body(void **params) {
    while (!**(volatile int **)params[0])
        usleep(1000);
}
static void one_body(void **params) {
    **(int **)params[0] = 41;
}
static void give_bodies(void) {
    const size_t sizes[] = {8, 8, 8, 8, 8};
    function give = (function)(uintptr_t)dlsym(library, "hipstub_set_kernel");
    if (give) {
        (void)give("until", until_body, sizes, 5);
        (void)give("one", one_body, sizes, 5);
    }
}

/* ---- one thread makes all calls, so that its caches serve them ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void (*wanted)(void);

static void *caller(void *none) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!wanted)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        wanted();
        pthread_mutex_lock(&lock);
        wanted = NULL;
        pthread_cond_broadcast(&changed);
    }
    return none;
}

static void start_caller(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, caller, NULL) != 0)
        exit(2);
}

/* Returns whether a call has returned in time, in milliseconds. If not, lets the kernel end, so
 * that the call returns. */
static bool returns(void (*call)(void), long patience) {
    struct timespec limit;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += patience % 1000 * 1000000;
    limit.tv_sec += patience / 1000 + limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    wanted = call;
    pthread_cond_broadcast(&changed);
    while (wanted && error == 0)
        error = pthread_cond_timedwait(&changed, &lock, &limit);
    const bool result = !wanted;
    if (!result)
        *flag = 1;
    while (wanted)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- a call and its result ---- */

static long patience;
static char **known; /* the calls that may wait, as "situation:call" */

/* Prints what a call does; `elsewhere` is later work on another stream, or NULL. A known call may
 * take at most `least` milliseconds. */
static void time_call(const char *name, void (*call)(void), void (*elsewhere)(void), long least) {
    long limit = patience;
    for (char **each = known; *each; each++)
        if (strcmp(*each, name) == 0 && limit > least)
            limit = least;
    const bool result = returns(call, limit);
    const bool delays = result && elsewhere && !returns(elsewhere, limit);
    printf("%s %s\n", name, !result ? "waits" : delays ? "delays" : "returns");
    fflush(stdout);
}

enum { SHORT = 20, SMALL = 256, MIDDLE = 64 << 10, LARGE = 1 << 20, FRESH = 3 << 20, PAGE = 4096 };
enum { NON_BLOCKING = 1, RELAXED = 2, PASSES = 2, HANG = 600000 };

static void *runtime;

static function find(void *in, const char *name) {
    function found = (function)(uintptr_t)dlsym(in, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return found;
}
#define MGPU(name, ...) find(runtime, "mgpu" #name)(__VA_ARGS__)
#define HIP(name, ...) find(library, "hip" #name)(__VA_ARGS__)

/* ---- the objects ---- */

static void *busy;      /* the stream of that kernel */
static void *named;     /* the stream that the calls name */
static void *bystander; /* a stream that no call names */
static void *module, *until, *one, *other_module, *stream, *event, *mark;
static void *block, *second, *scratch, *shared, *pinned;
static char *pageable, *registered;
static int64_t zero;
struct memref {
    void *allocated, *aligned;
    int64_t offset, size, stride;
};
static struct memref memref;

static void launch(void *kernel, void *data, void *on) {
    int64_t count = 4, stride = 1;
    void *arguments[] = {&data, &data, &zero, &count, &stride};
    const intptr_t once = 1;
    MGPU(LaunchKernel, kernel, once, once, once, once, once, once, 0, on, arguments, NULL,
         (size_t)5);
}

static void make_objects(void) {
    give_bodies();
    module = MGPU(ModuleLoad, image, sizeof image);
    until = MGPU(ModuleGetFunction, module, "until");
    one = MGPU(ModuleGetFunction, module, "one");
    HIP(HostMalloc, (void **)&flag, (size_t)PAGE, 0);
    HIP(HostMalloc, &pinned, (size_t)LARGE, 0);
    pageable = aligned_alloc(PAGE, LARGE);
    registered = aligned_alloc(PAGE, LARGE);
    memset(pageable, 1, LARGE);
    block = MGPU(MemAlloc, (uint64_t)LARGE, NULL, false);
    second = MGPU(MemAlloc, (uint64_t)LARGE, NULL, false);
    MGPU(MemHostRegister, registered, (uint64_t)LARGE);
    mark = MGPU(EventCreate);
}

/* ---- the calls ---- */

static void *got;
static size_t got_bytes;
static int32_t got_number;
static float milliseconds;

static void copy(void *to, const void *from, size_t bytes) {
    MGPU(Memcpy, to, from, bytes, named);
}

static void launch_cooperatively(void) {
    int64_t count = 4, stride = 1;
    void *arguments[] = {&block, &block, &zero, &count, &stride};
    const intptr_t once = 1;
    MGPU(LaunchKernelCooperative, one, once, once, once, once, once, once, once, once, once, 0,
         named, arguments, NULL);
}

static void launch_cluster(void) {
    int64_t count = 4, stride = 1;
    void *arguments[] = {&block, &block, &zero, &count, &stride};
    const intptr_t once = 1;
    MGPU(LaunchClusterKernel, one, once, once, once, once, once, once, once, once, once, 0, named,
         arguments, NULL, (size_t)5);
}

/* The program registers no kernel with HIP. HIP 7.2.4 ends the process for an unknown symbol. */
static void launch_symbol(void) {
    int version = 0;
    HIP(RuntimeGetVersion, &version);
    if (version >= 60000000)
        return;
    void *arguments[] = {&block};
    const intptr_t once = 1;
    MGPU(LaunchKernelRT, &zero, once, once, once, once, once, once, 0, named, arguments, NULL,
         (size_t)1);
}

static void get_memref(const char *function) {
    (void)((struct memref (*)())(uintptr_t)find(runtime, function))(registered, registered, zero,
                                                                    (int64_t)4, (int64_t)1);
}

/* A call may stand in several rows, so the number of its row names its function. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CALL(name, ...)                                                                            \
    static void JOIN(call_, __LINE__)(void) {                                                      \
        __VA_ARGS__;                                                                               \
    }
#include "calls.def"
#undef CALL

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
#define CALL(name, ...) {#name, JOIN(call_, __LINE__)},
#include "calls.def"
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- situations ---- */

static const char *situations;
static void work_elsewhere(void) {
    launch(one, pinned, bystander);
    MGPU(StreamSynchronize, bystander);
}

static void begin_kernel(void) {
    launch(until, (void *)flag, busy);
    MGPU(EventRecord, mark, busy);
}

static void begin(void) {
    HIP(DeviceSynchronize);
    *flag = 0;
    (void)returns(begin_kernel, HANG);
}

static void play(const char *situation) {
    if (!strstr(situations, situation))
        return;
    for (int i = 0; i < CALLS * PASSES; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s:%s", situation, calls[i % CALLS].name);
        if (*flag)
            begin();
        time_call(name, calls[i % CALLS].call, busy ? work_elsewhere : NULL, SHORT);
    }
    *flag = 1;
    HIP(DeviceSynchronize);
}

static void *stream_of_hip(unsigned flags) {
    void *made = NULL;
    HIP(StreamCreateWithFlags, &made, flags);
    return made;
}

static void use_named(void) {
    find(runtime, "mgpu_rt_use_stream")(named);
}
static void use_none(void) {
    find(runtime, "mgpu_rt_use_stream")(NULL);
}

static void *taken[256];
static int taken_count;

/* Takes all memory of the device that HIP has. */
static void take_memory(void) {
    find(runtime, "mgpu_rt_empty_cache")();
    taken_count = 0;
    for (size_t bytes = (size_t)1 << 32; bytes >= PAGE; bytes /= 2)
        while (HIP(Malloc, &taken[taken_count], bytes) == NULL)
            taken_count++;
}

/* HIP refuses an allocation, and has memory again afterwards. A block is idle then. */
static void be_short_for_a_while(void) {
    void *idle = MGPU(MemAlloc, (uint64_t)FRESH, named, false);
    take_memory();
    (void)MGPU(MemAlloc, (uint64_t)MIDDLE, named, false);
    while (taken_count)
        HIP(Free, taken[--taken_count]);
    MGPU(MemFree, idle, named);
}

static void play_all(void) {
    void *held[2] = {MGPU(StreamCreate), MGPU(StreamCreate)}, *graph = NULL;
    bystander = MGPU(StreamCreate);
    busy = held[0];
    named = held[1];
    play("held");
    named = NULL;
    play("null_is_named");
    busy = stream_of_hip(NON_BLOCKING);
    named = held[1];
    play("foreign");
    busy = NULL;
    play("null_is_busy");
    busy = held[0];
    named = stream_of_hip(NON_BLOCKING);
    (void)returns(use_named, HANG);
    play("external");
    void *captured = stream_of_hip(0);
    HIP(StreamBeginCapture, captured, RELAXED);
    named = held[1];
    (void)returns(use_none, HANG);
    play("capture");
    HIP(StreamEndCapture, captured, &graph);
    (void)returns(be_short_for_a_while, HANG);
    play("was_short");
    (void)returns(take_memory, HANG);
    play("short");
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    library = open_library(argv[2], RTLD_NOW | RTLD_GLOBAL);
    runtime = open_library(argv[1], RTLD_NOW);
    read_image(argv[3]);
    situations = argv[4];
    patience = atol(argv[5]);
    known = argv + 6;
    memref = (struct memref){image, aligned_alloc(PAGE, PAGE), 0, PAGE, 1};
    start_caller();
    (void)returns(make_objects, HANG);
    *flag = 1;
    play_all();
    puts("done");
    fflush(stdout);
    _exit(0);
}
