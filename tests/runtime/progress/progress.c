/* Calls every mgpu function while a kernel waits for the host, and prints what each call does:
 *
 *     progress IMAGE SITUATIONS PATIENCE [SITUATION:CALL...]
 *
 * SITUATIONS is a list such as "held,capture". The program prints a line for each situation and
 * call: "situation:call returns". "waits" replaces
 * "returns" if the call has not returned after PATIENCE milliseconds. "delays" means that the call
 * has returned, but that later work on another stream is not done after PATIENCE milliseconds. The
 * program then lets the kernel end, and launches it again before the next call. For the calls that
 * the last words name, the patience is at most SHORT milliseconds. */
#include "program.h"

int mgpu_rt_use_stream(void *stream);
int mgpu_rt_empty_cache(void);

static char image[1 << 20];
static volatile int *flag; /* the kernel `until` ends when this is not 0 */

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
    int (*give)(const char *, void (*)(void **), const size_t *, int);
    *(void (**)(void))&give = program_hip("hipstub_set_kernel");
    if (give) {
        give("until", until_body, sizes, 5);
        give("one", one_body, sizes, 5);
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

/* ---- the objects ---- */

static void *busy;      /* the stream of that kernel */
static void *named;     /* the stream that the calls name */
static void *bystander; /* a stream that no call names */
static void *module, *until, *one, *other_module, *stream, *event, *mark;
static void *block, *second, *scratch, *shared, *pinned;
static void *pageable, *registered;
static struct mgpu_memref_float memref;

static int64_t zero, four = 4, next = 1;
#define ARGUMENTS(data) ((void *[]){&data, &data, &zero, &four, &next})

static void launch(void *kernel, void *data, void *on) {
    mgpuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, on, ARGUMENTS(data), NULL, 5);
}

static void make_objects(void) {
    give_bodies();
    module = mgpuModuleLoad(image, sizeof image);
    until = mgpuModuleGetFunction(module, "until");
    one = mgpuModuleGetFunction(module, "one");
    HIP(hipHostMalloc, volatile int **, size_t, unsigned)(&flag, PAGE, 0);
    HIP(hipHostMalloc, void **, size_t, unsigned)(&pinned, LARGE, 0);
    pageable = aligned_alloc(PAGE, LARGE);
    registered = aligned_alloc(PAGE, LARGE);
    memset(pageable, 1, LARGE);
    block = mgpuMemAlloc(LARGE, NULL, false);
    second = mgpuMemAlloc(LARGE, NULL, false);
    mgpuMemHostRegister(registered, LARGE);
    mark = mgpuEventCreate();
}

/* ---- the calls ---- */

static void *got;
static size_t got_bytes;
static int32_t got_number;
static float milliseconds;

static void launch_cooperatively(void) {
    mgpuLaunchKernelCooperative(one, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, named, ARGUMENTS(block), NULL);
}

static void launch_cluster(void) {
    mgpuLaunchClusterKernel(one, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, named, ARGUMENTS(block), NULL, 5);
}

/* The program registers no kernel with HIP. HIP 7.2.4 ends the process for an unknown symbol. */
static void launch_symbol(void) {
    int version = 0;
    HIP(hipRuntimeGetVersion, int *)(&version);
    if (version < 60000000)
        mgpuLaunchKernelRT(&zero, 1, 1, 1, 1, 1, 1, 0, named, ARGUMENTS(block), NULL, 1);
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
    mgpuStreamSynchronize(bystander);
}

static void begin_kernel(void) {
    launch(until, (void *)flag, busy);
    mgpuEventRecord(mark, busy);
}

static void begin(void) {
    HIP(hipDeviceSynchronize, void)();
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
    HIP(hipDeviceSynchronize, void)();
}

static void *stream_of_hip(unsigned flags) {
    void *made = NULL;
    HIP(hipStreamCreateWithFlags, void **, unsigned)(&made, flags);
    return made;
}

static void use_named(void) {
    mgpu_rt_use_stream(named);
}
static void use_none(void) {
    mgpu_rt_use_stream(NULL);
}

static void *taken[256];
static int taken_count;

/* Takes all memory of the device that HIP has. */
static void take_memory(void) {
    mgpu_rt_empty_cache();
    taken_count = 0;
    for (size_t bytes = (size_t)1 << 32; bytes >= PAGE; bytes /= 2)
        while (HIP(hipMalloc, void **, size_t)(&taken[taken_count], bytes) == 0)
            taken_count++;
}

/* HIP refuses an allocation, and has memory again afterwards. A block is idle then. */
static void be_short_for_a_while(void) {
    void *idle = mgpuMemAlloc(FRESH, named, false);
    take_memory();
    (void)mgpuMemAlloc(MIDDLE, named, false);
    while (taken_count)
        HIP(hipFree, void *)(taken[--taken_count]);
    mgpuMemFree(idle, named);
}

static void play_all(void) {
    void *held[2] = {mgpuStreamCreate(), mgpuStreamCreate()}, *graph = NULL;
    bystander = mgpuStreamCreate();
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
    HIP(hipStreamBeginCapture, void *, int)(captured, RELAXED);
    named = held[1];
    (void)returns(use_none, HANG);
    play("capture");
    HIP(hipStreamEndCapture, void *, void **)(captured, &graph);
    (void)returns(be_short_for_a_while, HANG);
    play("was_short");
    (void)returns(take_memory, HANG);
    play("short");
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    read_image(argv[1]);
    situations = argv[2];
    patience = atol(argv[3]);
    known = argv + 4;
    memref = (struct mgpu_memref_float){(float *)image, aligned_alloc(PAGE, PAGE), 0, PAGE, 1};
    start_caller();
    (void)returns(make_objects, HANG);
    *flag = 1;
    play_all();
    puts("done");
    fflush(stdout);
    _exit(0);
}
