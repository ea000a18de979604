/* The threads that are explored: coroutines over the runtime's code, and the states that they are
 * in.
 *
 * A state is what the threads have on their stacks, the lines of memory that any of them ever
 * wrote, the world, and what is below. Lines are found as they are written: one that a state does
 * not hold is there as it was before the threads began. */
#ifndef THREADS_H
#define THREADS_H

#include "explore.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_LOCKS = 4 };

enum status { AT_START, AT_OPERATION, AT_CHOICE, AT_ACCESS, AT_LOCK, OVER };

struct coroutine {
    char *stack; /* its pointer, while it does not run */
    struct thread *block;
    int status; /* enum status */
    unsigned choices, chosen;
    int left;         /* operations */
    unsigned waits;   /* for which lock */
    unsigned holds;   /* a bit for each lock */
    size_t allocated; /* of its arena */
};

/* What a state begins with. */
struct machine {
    struct coroutine threads[THREADS];
    int owners[MOST_LOCKS]; /* thread + 1 */
};
extern struct machine now;

extern const struct scenario *scenario;
extern bool exploring;    /* each access to what threads share is a point; else none is */
extern bool found_shared; /* something turned out to be shared that was taken not to be */

/* Gives the scenario's threads their stacks, as many operations each, and their first state. */
void threads_make(const int *operations);

/* Plays a thread up to the next point; false if the program would not be a valid one. */
bool threads_run(int thread);

/* A state of the machine to go back to. The state begins with its `struct machine`. */
struct saved {
    size_t bytes, lines;
    char content[];
};
struct saved *threads_save(void);
void threads_restore(const struct saved *saved);

/* 128 bits that stand for a state. */
struct name {
    uint64_t words[2];
};
struct name threads_name(const struct saved *saved);

/* The C library's, as the runtime's calls of these names come to threads.c. */
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);

#endif
