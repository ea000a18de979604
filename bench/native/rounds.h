/* Runs a program in rounds. A request through a pipe starts each round, so that a benchmark can
 * measure several programs in turn without restarts.
 *
 *     PROGRAM                  reads a number of calls a line, makes them, writes their ns
 *     PROGRAM BEGIN N...       JSON: ns since BEGIN (CLOCK_MONOTONIC) after each number of calls
 *
 * Work that the device has not finished at the end of a round is included in the time. BENCH_WAIT
 * names a library and, after a comma, that library's function that waits for all work. BENCH_CPU,
 * if set, is the processor on which this thread stays after the first round. Driver threads that
 * started in the first round may run on other processors. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "native.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

static inline void wait_for_device(void) {
    static int (*wait_for_all)(void);
    if (!wait_for_all) {
        char *library = strdup(getenv("BENCH_WAIT"));
        char *function = strchr(library, ',');
        *function++ = '\0';
        *(void **)&wait_for_all = symbol(open_library(library), function);
        free(library);
    }
    wait_for_all();
}

static inline void pin(void) {
    const char *cpu = getenv("BENCH_CPU");
    cpu_set_t set;
    CPU_ZERO(&set);
    if (!cpu)
        return;
    CPU_SET((size_t)atol(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

static inline void answer_rounds(FILE *answers, void (*program)(void)) {
    long calls;
    for (long round = 0; scanf("%ld", &calls) == 1; round++) {
        if (round == 1)
            pin();
        const uint64_t begin = now_ns();
        for (long i = 0; i < calls; i++)
            program();
        wait_for_device();
        fprintf(answers, "%llu\n", (unsigned long long)(now_ns() - begin));
        fflush(answers);
    }
}

static inline void print_growth(FILE *answers, void (*program)(void), int count, char **numbers) {
    const uint64_t begin = strtoull(numbers[0], NULL, 10);
    long made = 0;
    for (int i = 1; i < count; i++) {
        for (; made < atol(numbers[i]); made++)
            program();
        wait_for_device();
        fprintf(answers, "%s%llu", i > 1 ? ", " : "[", (unsigned long long)(now_ns() - begin));
    }
    fprintf(answers, "]\n");
    fflush(answers);
}

/* Returns the stream for answers, which must be separate from the output of the program and the
 * driver. */
static inline FILE *take_answers(void) {
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !getenv("BENCH_WAIT"))
        fail("cannot serve", "BENCH_WAIT or the standard output is missing");
    return answers;
}

static inline int serve(int argc, char **argv, void (*program)(void)) {
    FILE *answers = take_answers();
    if (argc > 1)
        print_growth(answers, program, argc - 1, argv + 1);
    else
        answer_rounds(answers, program);
    return 0;
}

#endif
