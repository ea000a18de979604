/* Measures cached calls of mgpuMemAlloc and mgpuMemFree, and two calls of the library that do
 * nothing.
 *
 *     pairs RUNTIME ROUNDS
 *
 * Prints JSON: for each round, the ns of one allocation with its free, in one thread and in two
 * concurrent threads with separate streams. Also prints the ns of two empty calls. */
#include "native.h"

#include <pthread.h>
#include <stdbool.h>

enum { PAIRS = 20000, BYTES = 4000, THREADS = 2 };

static void *(*allocate)(uint64_t bytes, void *stream, bool shared);
static void (*release)(void *address, void *stream);
static const char *(*nothing)(void);
static void *(*create)(void);

static pthread_barrier_t round_begins;
static long rounds;

static double measure_pairs(void *stream) {
    const uint64_t begin = now_ns();
    for (int i = 0; i < PAIRS; i++)
        release(allocate(BYTES, stream, false), stream);
    return (double)(now_ns() - begin) / PAIRS;
}

static double measure_nothing(void) {
    const uint64_t begin = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        (void)nothing();
        (void)nothing();
    }
    return (double)(now_ns() - begin) / PAIRS;
}

static void *work(void *times) {
    void *stream = create();
    for (long round = 0; round < rounds; round++) {
        pthread_barrier_wait(&round_begins);
        ((double *)times)[round] = measure_pairs(stream);
    }
    return NULL;
}

static void print(const char *separator, const char *name, const double *times, long count) {
    printf("%s\"%s\": [", separator, name);
    for (long i = 0; i < count; i++)
        printf("%s%.3f", i ? ", " : "", times[i]);
    printf("]");
}

int main(int argc, char **argv) {
    if (argc != 3)
        fail("usage", "pairs RUNTIME ROUNDS");
    void *runtime = open_library(argv[1]);
    rounds = atol(argv[2]);
    *(void **)&allocate = symbol(runtime, "mgpuMemAlloc");
    *(void **)&release = symbol(runtime, "mgpuMemFree");
    *(void **)&create = symbol(runtime, "mgpuStreamCreate");
    *(void **)&nothing = symbol(runtime, "mgpu_rt_version");
    double *times = calloc((size_t)rounds * (THREADS + 2), sizeof *times);
    double *one = times + rounds * THREADS, *empty = one + rounds;
    void *stream = create();
    (void)measure_pairs(stream);
    for (long round = 0; round < rounds; round++) {
        one[round] = measure_pairs(stream);
        empty[round] = measure_nothing();
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&round_begins, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, times + i * rounds);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    print("{", "one", one, rounds);
    print(", ", "empty", empty, rounds);
    print(", ", "two", times, rounds * THREADS);
    puts("}");
    return 0;
}
