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

static struct {
    FILE *answers;
    uint64_t begun;
    long count; /* of rounds that have begun */
} rounds;

/* Opens the stream for answers, which must be separate from the output of the program and the
 * driver. */
static inline void take_answers(void) {
    rounds.answers = fdopen(dup(STDOUT_FILENO), "w");
    if (!rounds.answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !getenv("BENCH_WAIT"))
        fail("cannot serve", "BENCH_WAIT or the standard output is missing");
}

static inline void answer(uint64_t ns) {
    fprintf(rounds.answers, "%llu\n", (unsigned long long)ns);
    fflush(rounds.answers);
}

/* Returns the number of calls of the next round; 0 if no more rounds are requested. */
static inline long begin_round(void) {
    long calls;
    if (scanf("%ld", &calls) != 1)
        return 0;
    if (rounds.count++ == 1)
        pin();
    rounds.begun = now_ns();
    return calls;
}

/* Returns the nanoseconds since the round began. */
static inline uint64_t end_round(void) {
    wait_for_device();
    return now_ns() - rounds.begun;
}

static inline void answer_rounds(void (*program)(void)) {
    long calls;
    while ((calls = begin_round()) > 0) {
        for (long i = 0; i < calls; i++)
            program();
        answer(end_round());
    }
}

static inline int serve(void (*program)(void)) {
    take_answers();
    answer_rounds(program);
    return 0;
}

#endif
