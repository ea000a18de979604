/* Runs a program in rounds: reads a number of calls a line, makes them, writes their ns. A request
 * through a pipe starts each round, so that a benchmark can measure several programs in turn
 * without restarts.
 *
 * Work that the device has not finished at the end of a round is included in the time. BENCH_WAIT
 * names a library and, after a comma, that library's function that waits for all work. BENCH_CPU,
 * if set, is the processor on which this thread stays after the first round. Driver threads that
 * started in the first round may run on other processors. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "native.h"

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
    if (getenv("BENCH_CPU"))
        pin_to(atoi(getenv("BENCH_CPU")));
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

/* Returns the stream for answers, which must be separate from the output of the program and the
 * driver. */
static inline FILE *take_answers(void) {
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !getenv("BENCH_WAIT"))
        fail("cannot serve", "BENCH_WAIT or the standard output is missing");
    return answers;
}

static inline int serve(void (*program)(void)) {
    answer_rounds(take_answers(), program);
    return 0;
}

#endif
