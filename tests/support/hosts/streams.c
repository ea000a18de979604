/* Threads create, use, pass on and destroy streams, all at random.
 *
 *     streams RUNTIME HIP SEED THREADS STEPS
 *
 * Prints "ok" if no stream was ever handed out while another thread held it, or while work was
 * pending. HIP is the library that the runtime uses; the program queries this library for pending
 * work. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXCHANGE = 4, HELD = 1 << 12, MOST = 16 };

static struct {
    void *(*StreamCreate)(void);
    void (*StreamDestroy)(void *stream);
    void (*StreamSynchronize)(void *stream);
    void *(*MemAlloc)(uint64_t bytes, void *stream, _Bool shared);
    void (*MemFree)(void *ptr, void *stream);
    void (*Memset32)(void *ptr, int value, size_t count, void *stream);
} mgpu;
static int (*hip_query)(void *stream);

static void *exchange[EXCHANGE]; /* streams that are being passed from one thread to another */
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *stream;
    bool held;
} table[HELD];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int wrong;
static int steps;

/* Returns whether another thread held the stream. */
static bool set_held(void *stream, bool held) {
    size_t slot = (uintptr_t)stream / 16 % HELD;
    pthread_mutex_lock(&table_lock);
    while (table[slot].stream && table[slot].stream != stream)
        slot = (slot + 1) % HELD;
    const bool before = table[slot].held;
    table[slot].stream = stream;
    table[slot].held = held;
    pthread_mutex_unlock(&table_lock);
    return before;
}

static void *create(void) {
    void *stream = mgpu.StreamCreate();
    if (set_held(stream, true)) {
        fprintf(stderr, "%p is held by somebody\n", stream);
        wrong = 1;
    }
    if (hip_query(stream) != 0) {
        fprintf(stderr, "%p has work pending\n", stream);
        wrong = 1;
    }
    return stream;
}

static void destroy(void *stream) {
    set_held(stream, false);
    mgpu.StreamDestroy(stream);
}

/* Puts a stream or NULL into a place of the exchange; returns the stream or NULL that was there. */
static void *swap(unsigned place, void *stream) {
    pthread_mutex_lock(&exchange_lock);
    void *other = exchange[place % EXCHANGE];
    exchange[place % EXCHANGE] = stream;
    pthread_mutex_unlock(&exchange_lock);
    return other;
}

static void submit(void *stream) {
    void *block = mgpu.MemAlloc(1024, stream, false);
    mgpu.Memset32(block, 7, 256, stream);
    mgpu.MemFree(block, stream);
}

static void *work(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    void *stream = NULL;
    for (int step = 0; step < steps; step++) {
        const unsigned dice = (unsigned)rand_r(&state);
        if (!stream)
            stream = create();
        switch (dice % 8) {
        case 0:
            stream = swap(dice / 8, stream);
            break;
        case 1:
        case 2:
            destroy(stream);
            stream = NULL;
            break;
        case 3:
        case 4:
            mgpu.StreamSynchronize(stream);
            break;
        default:
            submit(stream);
        }
    }
    if (stream)
        destroy(stream);
    return NULL;
}

static void *symbol(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    if (argc != 6)
        return 2;
    const int count = atoi(argv[4]) < MOST ? atoi(argv[4]) : MOST;
    steps = atoi(argv[5]);
    void *library = dlopen(argv[1], RTLD_NOW);
    *(void **)&mgpu.StreamCreate = symbol(library, "mgpuStreamCreate");
    *(void **)&mgpu.StreamDestroy = symbol(library, "mgpuStreamDestroy");
    *(void **)&mgpu.StreamSynchronize = symbol(library, "mgpuStreamSynchronize");
    *(void **)&mgpu.MemAlloc = symbol(library, "mgpuMemAlloc");
    *(void **)&mgpu.MemFree = symbol(library, "mgpuMemFree");
    *(void **)&mgpu.Memset32 = symbol(library, "mgpuMemset32");
    *(void **)&hip_query = symbol(dlopen(argv[2], RTLD_NOW), "hipStreamQuery");
    for (int round = 0; round < 2; round++) { /* the second round uses the streams of
                                               * threads that have ended */
        for (int i = 0; i < count; i++)
            pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(atoi(argv[3]) * 100 + i));
        for (int i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
    if (!wrong)
        puts("ok");
    return wrong;
}
