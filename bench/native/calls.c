/* Measures the nanoseconds, or instructions, of an iteration of the forum's loop.
 *
 *     calls time HIP ROUNDS ITERATIONS CPU SIDE...       JSON: ns an iteration, by loop and round;
 *                                                        the loops take turns
 *     calls threads HIP ROUNDS ITERATIONS THREADS SIDE   JSON: the same for each thread, alone
 *                                                        ("single") and with all ("together")
 *     calls count HIP ITERATIONS LOOP SIDE [copy]        runs `measured` once, for callgrind
 *     calls record HIP ITERATIONS LOOP SIDE              JSON: calls of HIP, by function
 *
 * A SIDE is NAME,PATH or NAME,PATH,VARIABLE=VALUE: a runtime, and the environment that the runtime
 * reads at its first call. LOOP is 7, 5 or 2: the number of calls in the loop. Two sides of one
 * library need two copies of the file, because the loader opens a file only once. With `copy`, the
 * image and the kernel's name are on the heap, as in a JIT, and not in the program's constants. */
#include "forum.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MAX_SIDES = 8, MAX_LOOPS = 2 * MAX_SIDES + 1, MAX_THREADS = 256, LOOPS = 3 };

struct side {
    const char *name;
    struct runtime runtime;
    void *module; /* the program holds the module all the time, as a program of LLVM 22 does */
};

struct loop {
    const struct side *side; /* NULL for the loop of 2 calls */
    handle stream;           /* of the loop of 2 calls */
    int calls;
};

static handle function; /* of the loop of 2 calls */
static struct source source;
static struct side sides[MAX_SIDES];

static void run(const struct loop *loop, long iterations) {
    if (loop->calls == 7)
        forum_7_calls(&loop->side->runtime, source, iterations);
    else if (loop->calls == 5)
        forum_5_calls(&loop->side->runtime, loop->side->module, source.name, iterations);
    else
        forum_2_calls(function, loop->stream, iterations);
}

/* Callgrind counts while this function runs, and finds this function by name. */
void measured(const struct loop *loop, long iterations);
__attribute__((noinline, noclone)) void measured(const struct loop *loop, long iterations) {
    run(loop, iterations);
}

static struct side *open_side(struct side *side, char *text) {
    side->name = strtok(text, ",");
    const char *path = strtok(NULL, ",");
    char *variable = strtok(NULL, ",");
    char *value = variable ? strchr(variable, '=') : NULL;
    if (!path || (variable && !value))
        fail("not NAME,PATH[,VARIABLE=VALUE]", side->name);
    if (value) {
        *value++ = '\0';
        setenv(variable, value, 1);
    }
    resolve_runtime(&side->runtime, open_library(path));
    side->module =
        side->runtime.ModuleLoad(source.image, (size_t)(source.image_end - source.image));
    if (!side->module)
        fail("the runtime cannot load the image", path);
    if (variable)
        unsetenv(variable);
    return side;
}

static handle new_stream(void) {
    handle stream;
    CALL(StreamCreate, &stream);
    return stream;
}

/* ---- time ---- */

static double timed(const struct loop *loop, long iterations) {
    const uint64_t begin = now_ns();
    run(loop, iterations);
    return (double)(now_ns() - begin) / (double)iterations;
}

/* Fills caches and trains branch predictors again. */
static void warm_up(const struct loop *loop, long iterations) {
    run(loop, iterations / 8);
}

static double *new_times(long count) {
    double *times = calloc((size_t)count, sizeof *times);
    if (!times)
        fail("no memory", "for the times");
    return times;
}

static void print_times(const double *times, long rounds) {
    for (long round = 0; round < rounds; round++)
        printf("%s%.3f", round ? ", " : "[", times[round]);
    printf("]");
}

static void time_sides(long rounds, long iterations, int cpu, int count, char **names) {
    struct loop loops[MAX_LOOPS] = {{NULL, new_stream(), 2}};
    int used = 1;
    for (int i = 0; i < count; i++) {
        const struct side *side = open_side(&sides[i], names[i]);
        loops[used++] = (struct loop){side, NULL, 7};
        loops[used++] = (struct loop){side, NULL, 5};
    }
    double *times = new_times(used * rounds);
    pin_to(cpu);
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < used; i++) {
            const int loop = (int)((i + round) % used);
            warm_up(&loops[loop], iterations);
            times[loop * rounds + round] = timed(&loops[loop], iterations);
        }
    for (int i = 0; i < used; i++) {
        const struct side *side = loops[i].side;
        printf("%s\"%s/%d\": ", i ? ", " : "{", side ? side->name : "hoisted", loops[i].calls);
        print_times(times + i * rounds, rounds);
    }
    printf("}\n");
    free(times);
}

/* ---- threads ---- */

/* Each thread is pinned to its own processor and has its own stream, as in a program. The loop of 2
 * calls shows how the machine itself affects the threads. */
static struct {
    int count;
    long rounds, iterations;
    pthread_barrier_t phase_begins; /* a thread that does not take part sleeps */
    atomic_int arrived;             /* threads that take part spin, and start at the same moment */
} threads;

enum { SINGLE, TOGETHER, WAYS };
static const char *const ways[WAYS] = {"single", "together"};

static struct worker {
    pthread_t thread;
    int number;
    double *times[LOOPS][WAYS];
} workers[MAX_THREADS];

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

static void meet(void) {
    atomic_fetch_add(&threads.arrived, 1);
    while (atomic_load(&threads.arrived) % threads.count != 0)
        ;
}

/* The threads run one at a time, and then concurrently. */
static void one_round(const struct worker *worker, long round, int number,
                      const struct loop *loop) {
    double *const *times = worker->times[number];
    for (int turn = 0; turn < threads.count; turn++) {
        pthread_barrier_wait(&threads.phase_begins);
        if (turn == worker->number) {
            warm_up(loop, threads.iterations);
            times[SINGLE][round] = timed(loop, threads.iterations);
        }
    }
    pthread_barrier_wait(&threads.phase_begins);
    warm_up(loop, threads.iterations);
    meet();
    times[TOGETHER][round] = timed(loop, threads.iterations);
}

static void *work(void *argument) {
    const struct worker *worker = argument;
    pin_to(processor(worker->number));
    const struct loop loops[LOOPS] = {
        {&sides[0], NULL, 7}, {&sides[0], NULL, 5}, {NULL, new_stream(), 2}};
    for (long round = 0; round < threads.rounds; round++)
        for (int i = 0; i < LOOPS; i++)
            one_round(worker, round, i, &loops[i]);
    return NULL;
}

static void print_threads(int loop, int way) {
    for (int i = 0; i < threads.count; i++) {
        printf("%s", i ? ", " : "[");
        print_times(workers[i].times[loop][way], threads.rounds);
    }
    printf("]");
}

static void time_threads(long rounds, long iterations, int count, char *side) {
    static const int calls_of[LOOPS] = {7, 5, 2};
    if (count < 1 || count > MAX_THREADS)
        fail("too many or too few threads", side);
    threads.count = count;
    threads.rounds = rounds;
    threads.iterations = iterations;
    open_side(&sides[0], side);
    pthread_barrier_init(&threads.phase_begins, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        workers[i].number = i;
        for (int loop = 0; loop < LOOPS; loop++)
            for (int way = 0; way < WAYS; way++)
                workers[i].times[loop][way] = new_times(rounds);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            fail("no thread", side);
    }
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    for (int loop = 0; loop < LOOPS; loop++) {
        printf("%s\"%d\": ", loop ? ", " : "{", calls_of[loop]);
        for (int way = 0; way < WAYS; way++) {
            printf("%s\"%s\": ", way ? ", " : "{", ways[way]);
            print_threads(loop, way);
        }
        printf("}");
    }
    printf("}\n");
}

/* ---- counts ---- */

/* In record mode the stub reports how often it was called. */
static void record(const struct loop *loop, long iterations) {
    void *stub = open_library(getenv("MGPU_RT_HIP"));
    void (*reset)(void);
    char *(*json)(void);
    *(void **)&reset = symbol(stub, "hipstub_reset");
    *(void **)&json = symbol(stub, "hipstub_json");
    reset();
    run(loop, iterations);
    char *text = json();
    puts(text);
    free(text);
}

int main(int argc, char **argv) {
    if (argc < 6)
        fail("usage", "see the head of calls.c");
    const char *mode = argv[1];
    const bool copy = argc == 7 && strcmp(argv[6], "copy") == 0;
    source = copy ? forum_copies() : forum_constants();
    setenv("MGPU_RT_HIP", argv[2], 1);
    function = prepare_hip(argv[2]);
    if (strcmp(mode, "time") == 0) {
        const int count = argc - 6 < MAX_SIDES ? argc - 6 : MAX_SIDES;
        time_sides(atol(argv[3]), atol(argv[4]), atoi(argv[5]), count, argv + 6);
        return 0;
    }
    if (strcmp(mode, "threads") == 0 && argc == 7) {
        time_threads(atol(argv[3]), atol(argv[4]), atoi(argv[5]), argv[6]);
        return 0;
    }
    const int calls = atoi(argv[4]);
    const handle stream = new_stream();
    const struct loop loop = {calls == 2 ? NULL : open_side(&sides[0], argv[5]), stream, calls};
    run(&loop, 8); /* does the one-time work */
    if (strcmp(mode, "record") == 0)
        record(&loop, atol(argv[3]));
    else
        measured(&loop, atol(argv[3]));
    return 0;
}
