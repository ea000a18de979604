/* Measures the ns of an iteration of the forum's loop in several threads. In each round the threads
 * run one at a time, and then concurrently.
 *
 *     threads HIP RUNTIME THREADS ROUNDS ITERATIONS
 *
 * Prints JSON: for each loop, "single" (one thread at a time) and "together" (all threads).
 * "single" and "together" contain a list for each thread, with the ns of each round. Two loops make
 * 7 and 5 calls to the runtime. The hoisted loop of 2 calls shows how the machine itself affects
 * two threads. Each thread is pinned to its own processor and has its own stream, as in a
 * program. */
#include "forum.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { LOOPS = 3, MAX_THREADS = 256 };
static const int calls_of[LOOPS] = {7, 5, 2};

static struct runtime runtime;
static handle function; /* of the loop of 2 calls */
static int thread_count;
static long rounds, iterations;

static pthread_barrier_t
    phase_begins;          /* a thread that does not take part sleeps and uses no processor */
static atomic_int arrived; /* threads that take part spin, and start at the same moment */

struct worker {
    pthread_t thread;
    int number;
    void *module;
    handle stream;
    double *single[LOOPS], *together[LOOPS];
};

/* Returns the processor of a thread: one of those that this process may use. */
static int processor(int number) {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    number %= CPU_COUNT(&allowed);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &allowed) || number-- > 0)
        cpu++;
    return cpu;
}

static void run(const struct worker *worker, int loop, long count) {
    if (calls_of[loop] == 7)
        forum_7_calls(&runtime, forum_constants(), count);
    else if (calls_of[loop] == 5)
        forum_5_calls(&runtime, worker->module, KERNEL, count);
    else
        forum_2_calls(function, worker->stream, count);
}

static double timed(const struct worker *worker, int loop) {
    const uint64_t begin = now_ns();
    run(worker, loop, iterations);
    return (double)(now_ns() - begin) / (double)iterations;
}

static void meet(void) {
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) % thread_count != 0)
        ;
}

static void one_round(struct worker *worker, long round, int loop) {
    for (int turn = 0; turn < thread_count; turn++) {
        pthread_barrier_wait(&phase_begins);
        if (turn == worker->number) {
            run(worker, loop, iterations / 8); /* fills the caches again */
            worker->single[loop][round] = timed(worker, loop);
        }
    }
    pthread_barrier_wait(&phase_begins);
    run(worker, loop, iterations / 8);
    meet();
    worker->together[loop][round] = timed(worker, loop);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    pin_to(processor(worker->number));
    CALL(StreamCreate, &worker->stream);
    worker->module = runtime.ModuleLoad(forum_image, (size_t)(forum_image_end - forum_image));
    for (long round = 0; round < rounds; round++)
        for (int loop = 0; loop < LOOPS; loop++)
            one_round(worker, round, loop);
    return NULL;
}

static void print(const char *way, const struct worker *workers, int loop, bool together) {
    printf("\"%s\": [", way);
    for (int i = 0; i < thread_count; i++) {
        const double *times = together ? workers[i].together[loop] : workers[i].single[loop];
        printf("%s[", i ? ", " : "");
        for (long round = 0; round < rounds; round++)
            printf("%s%.3f", round ? ", " : "", times[round]);
        printf("]");
    }
    printf("]");
}

int main(int argc, char **argv) {
    static struct worker workers[MAX_THREADS];
    if (argc != 6)
        fail("usage", "threads HIP RUNTIME THREADS ROUNDS ITERATIONS");
    setenv("MGPU_RT_HIP", argv[1], 1);
    function = prepare_hip(argv[1]);
    resolve_runtime(&runtime, open_library(argv[2]));
    thread_count = atoi(argv[3]);
    rounds = atol(argv[4]);
    iterations = atol(argv[5]);
    if (thread_count < 1 || thread_count > MAX_THREADS)
        fail("too many or too few threads", argv[3]);
    pthread_barrier_init(&phase_begins, NULL, (unsigned)thread_count);
    for (int i = 0; i < thread_count; i++) {
        workers[i].number = i;
        for (int loop = 0; loop < LOOPS; loop++) {
            workers[i].single[loop] = calloc((size_t)rounds, sizeof(double));
            workers[i].together[loop] = calloc((size_t)rounds, sizeof(double));
        }
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            fail("no thread", argv[3]);
    }
    for (int i = 0; i < thread_count; i++)
        pthread_join(workers[i].thread, NULL);
    printf("{");
    for (int loop = 0; loop < LOOPS; loop++) {
        printf("%s\"%d\": {", loop ? ", " : "", calls_of[loop]);
        print("single", workers, loop, false);
        printf(", ");
        print("together", workers, loop, true);
        printf("}");
    }
    printf("}\n");
    return 0;
}
