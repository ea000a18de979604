/* Runs threads on one or several devices; each thread loads, allocates, copies, launches and frees
 * as a lowered program does.
 *
 *     devices HIP RUNTIME THREADS DEVICES ROUNDS ITERATIONS     JSON: ns an iteration, by round
 *
 * A RUNTIME of "-" means the handwritten loop on HIP, which contains only the copies, the launch
 * and the synchronise. Thread n uses device n modulo DEVICES. A round lasts from the begin of its
 * first thread to the end of its last thread. */
#include "forum.h"
#include "hip.h"

#include <pthread.h>
#include <stdbool.h>

enum { MAX_THREADS = 64, BYTES = 4096 };

static struct {
    void *(*MemAlloc)(uint64_t bytes, void *stream, bool shared);
    void (*MemFree)(void *block, void *stream);
    void (*Memcpy)(void *to, void *from, size_t bytes, void *stream);
    void (*SetDefaultDevice)(int32_t device);
} memory;

static struct runtime runtime;
static bool hoisted;
static int thread_count, device_count;
static long rounds, iterations;
static pthread_barrier_t turn;

struct worker {
    pthread_t thread;
    int number;
    uint64_t began, ended;   /* times of the last round */
    handle function, stream; /* only the handwritten loop uses `function`, `stream` and `block` */
    void *block;
    char host[BYTES];
};

static void *must(void *made, const char *what) {
    if (!made)
        fail("the runtime cannot make", what);
    return made;
}

/* Makes one step as a program lowered by LLVM 19 does, without keeping an object for the next
 * step. */
static void step_lowered(struct worker *worker) {
    void *params[1];
    void *stream = must(runtime.StreamCreate(), "a stream");
    void *block = must(memory.MemAlloc(BYTES, stream, false), "a block");
    memory.Memcpy(block, worker->host, BYTES, stream);
    void *module = must(runtime.ModuleLoad(forum_image, 0), "a module");
    void *function = must(runtime.ModuleGetFunction(module, KERNEL), "a function");
    runtime.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 0);
    memory.Memcpy(worker->host, block, BYTES, stream);
    memory.MemFree(block, stream);
    runtime.StreamSynchronize(stream);
    runtime.StreamDestroy(stream);
    runtime.ModuleUnload(module);
}

static void step_by_hand(struct worker *worker) {
    void *params[1];
    CALL(MemcpyAsync, worker->block, worker->host, BYTES, MEMCPY_DEFAULT, worker->stream);
    CALL(ModuleLaunchKernel, worker->function, 1, 1, 1, 1, 1, 1, 0, worker->stream, params, NULL);
    CALL(MemcpyAsync, worker->host, worker->block, BYTES, MEMCPY_DEFAULT, worker->stream);
    CALL(StreamSynchronize, worker->stream);
}

static void prepare(struct worker *worker) {
    const int device = worker->number % device_count;
    if (!hoisted) {
        memory.SetDefaultDevice(device);
        return;
    }
    handle module;
    CALL(SetDevice, device);
    CALL(ModuleLoadData, &module, forum_image);
    CALL(ModuleGetFunction, &worker->function, module, KERNEL);
    CALL(StreamCreate, &worker->stream);
    CALL(Malloc, &worker->block, BYTES);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    prepare(worker);
    for (long round = -1; round < rounds; round++) { /* the first round fills the caches */
        pthread_barrier_wait(&turn);
        worker->began = now_ns();
        for (long i = 0; i < iterations; i++)
            if (hoisted)
                step_by_hand(worker);
            else
                step_lowered(worker);
        worker->ended = now_ns();
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static double last_round(const struct worker *workers) {
    uint64_t began = UINT64_MAX, ended = 0;
    for (int i = 0; i < thread_count; i++) {
        began = workers[i].began < began ? workers[i].began : began;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
    }
    return (double)(ended - began);
}

static void time_rounds(const struct worker *workers) {
    printf("[");
    for (long round = -1; round < rounds; round++) {
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        if (round >= 0)
            printf("%s%.1f", round ? ", " : "", last_round(workers) / (double)iterations);
    }
    printf("]\n");
}

static void open_runtime(const char *path) {
    void *library = open_library(path);
    resolve_runtime(&runtime, library);
#define RESOLVE(name) *(void **)&memory.name = symbol(library, "mgpu" #name)
    RESOLVE(MemAlloc);
    RESOLVE(MemFree);
    RESOLVE(Memcpy);
    RESOLVE(SetDefaultDevice);
#undef RESOLVE
}

int main(int argc, char **argv) {
    static struct worker workers[MAX_THREADS];
    if (argc != 7)
        fail("usage", "see the head of devices.c");
    hoisted = strcmp(argv[2], "-") == 0;
    thread_count = atoi(argv[3]);
    device_count = atoi(argv[4]);
    rounds = atol(argv[5]);
    iterations = atol(argv[6]);
    if (thread_count < 1 || thread_count > MAX_THREADS || device_count < 1)
        fail("too many or too few threads, or no device", argv[3]);
    if (hoisted)
        open_hip(argv[1]);
    else
        open_runtime(argv[2]);
    pthread_barrier_init(&turn, NULL, (unsigned)thread_count + 1);
    for (int i = 0; i < thread_count; i++) {
        workers[i].number = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            fail("no thread", argv[3]);
    }
    time_rounds(workers);
    for (int i = 0; i < thread_count; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}
