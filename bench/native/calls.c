/* Measures the nanoseconds, or instructions, of an iteration of the forum's loop, with several
 * runtimes in turn.
 *
 *     calls time HIP ROUNDS ITERATIONS CPU SIDE...    JSON: ns an iteration, by loop and round; the
 *                                                     first side with cold caches too
 *     calls count HIP ITERATIONS LOOP SIDE [copy]     runs `measured` once, for callgrind
 *     calls record HIP ITERATIONS LOOP SIDE           JSON: calls of HIP in the loop, by function
 *     calls reports HIP ROUNDS ITERATIONS SIDE        JSON: ns of a call of HIP by other code,
 * while HIP reports calls to the side, and afterwards
 *
 * A SIDE is NAME,PATH or NAME,PATH,VARIABLE=VALUE: a runtime, and the environment that the runtime
 * reads at its first call. LOOP is 7, 5 or 2: the number of calls in the loop. Two sides of one
 * library need two copies of the file, because the loader opens a file only once. With `copy`, the
 * image and the kernel's name are on the heap, as in a JIT, and not in the program's constants. */
#include "forum.h"

#include <stdbool.h>

enum { MAX_SIDES = 8, MAX_LOOPS = 2 * MAX_SIDES + 4 };

struct side {
    const char *name;
    struct runtime runtime;
    void *module; /* the program holds the module all the time, as a program of LLVM 22 does */
};

struct loop {
    const struct side *side; /* NULL for the loop of 2 calls */
    int calls;
    bool cold; /* with other work between the launches */
};

static handle function, stream; /* of the loop of 2 calls */
static struct source source;
static struct side sides[MAX_SIDES];

static void run(const struct loop *loop, long iterations) {
    if (loop->calls == 7)
        forum_7_calls(&loop->side->runtime, source, iterations);
    else if (loop->calls == 5)
        forum_5_calls(&loop->side->runtime, loop->side->module, source.name, iterations);
    else
        forum_2_calls(function, stream, iterations);
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

/* ---- time ---- */

/* Does other work of a program between two launches, which evicts the runtime's tables from the
 * nearest cache. */
static void work_between(void) {
    static volatile char memory[64 << 10];
    for (size_t i = 0; i < sizeof memory; i += 64)
        memory[i]++;
}

/* Times each iteration separately, so each measured time includes the cost of reading the clock. */
static double time_cold_loop(const struct loop *loop, long iterations) {
    uint64_t sum = 0;
    for (long i = 0; i < iterations; i++) {
        work_between();
        const uint64_t begin = now_ns();
        run(loop, 1);
        sum += now_ns() - begin;
    }
    return (double)sum / (double)iterations;
}

static double time_loop(const struct loop *loop, long iterations) {
    if (loop->cold)
        return time_cold_loop(loop, iterations);
    run(loop, iterations / 8); /* fills caches and trains branch predictors again */
    const uint64_t begin = now_ns();
    run(loop, iterations);
    return (double)(now_ns() - begin) / (double)iterations;
}

static void print_times(const struct loop *loop, const double *times, long rounds) {
    printf("\"%s/%d%s\": [", loop->side ? loop->side->name : "hoisted", loop->calls,
           loop->cold ? "/cold" : "");
    for (long round = 0; round < rounds; round++)
        printf("%s%.3f", round ? ", " : "", times[round]);
    printf("]");
}

static void time_sides(long rounds, long iterations, int cpu, int count, char **names) {
    struct loop loops[MAX_LOOPS] = {{NULL, 2, false}, {NULL, 2, true}};
    int used = 2;
    for (int i = 0; i < count; i++) {
        const struct side *side = open_side(&sides[i], names[i]);
        for (int cold = 0; cold <= (i == 0); cold++) {
            loops[used++] = (struct loop){side, 7, cold};
            loops[used++] = (struct loop){side, 5, cold};
        }
    }
    double *times = calloc((size_t)(used * rounds), sizeof *times);
    if (!times)
        fail("no memory", "for the times");
    pin_to(cpu);
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < used; i++) {
            const int loop = (int)((i + round) % used);
            times[loop * rounds + round] = time_loop(&loops[loop], iterations);
        }
    for (int i = 0; i < used; i++) {
        printf("%s", i ? ", " : "{");
        print_times(&loops[i], times + i * rounds, rounds);
    }
    printf("}\n");
    free(times);
}

/* ---- HIP's reports of calls ---- */

static void print_calls(const char *name, int (*call)(void), long rounds, long iterations) {
    printf("\"%s\": [", name);
    for (long round = 0; round < rounds; round++) {
        const uint64_t begin = now_ns();
        for (long i = 0; i < iterations; i++)
            call();
        printf("%s%.3f", round ? ", " : "", (double)(now_ns() - begin) / (double)iterations);
    }
    printf("]");
}

/* The side's first call of HIP must be the first one of the process. */
static void time_reports(const char *hip, long rounds, long iterations, char *side) {
    void *library = open_library(hip);
    int (*call)(void);
    void (*set_tracer)(void *tracer);
    *(void **)&call = symbol(library, "hipDeviceSynchronize");
    *(void **)&set_tracer = symbol(library, "hipRegisterTracerCallback");
    open_side(&sides[0], side);
    printf("{");
    print_calls("reported", call, rounds, iterations);
    set_tracer(NULL);
    printf(", ");
    print_calls("unreported", call, rounds, iterations);
    printf("}\n");
}

/* ---- counts ---- */

static struct loop one_loop(const char *calls, char *side) {
    const int number = atoi(calls);
    return (struct loop){number == 2 ? NULL : open_side(&sides[0], side), number, false};
}

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
    const bool copy = argc == 7 && strcmp(argv[6], "copy") == 0;
    source = copy ? forum_copies() : forum_constants();
    setenv("MGPU_RT_HIP", argv[2], 1);
    if (strcmp(argv[1], "reports") == 0) {
        time_reports(argv[2], atol(argv[3]), atol(argv[4]), argv[5]);
        return 0;
    }
    function = prepare_hip(argv[2]);
    CALL(StreamCreate, &stream);
    if (strcmp(argv[1], "time") == 0) {
        const int count = argc - 6 < MAX_SIDES ? argc - 6 : MAX_SIDES;
        time_sides(atol(argv[3]), atol(argv[4]), atoi(argv[5]), count, argv + 6);
        return 0;
    }
    const struct loop loop = one_loop(argv[4], argv[5]);
    run(&loop, 8); /* does the one-time work */
    if (strcmp(argv[1], "record") == 0)
        record(&loop, atol(argv[3]));
    else
        measured(&loop, atol(argv[3]));
    return 0;
}
