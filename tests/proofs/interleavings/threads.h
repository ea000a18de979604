/* The explored threads: coroutines over the runtime's code, and their states.
 *
 * A state has the threads' stacks, the lines of memory that any of them ever wrote, the world, and
 * the fields below. Lines are found when they are written: a line that a state lacks has its
 * content from before the threads began. */
#ifndef THREADS_H
#define THREADS_H

#include "explore.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_LOCKS = 4 };

enum status { AT_START, AT_OPERATION, AT_CHOICE, AT_ACCESS, AT_LOCK, OVER };

struct coroutine {
    char *stack; /* the thread's stack pointer, while it does not run */
    struct thread *block;
    int status; /* enum status */
    unsigned choices, chosen;
    int left;         /* operations */
    unsigned waits;   /* the lock that the thread waits for */
    unsigned holds;   /* a bit for each lock */
    size_t allocated; /* bytes of the thread's arena */
};

/* The begin of a state. */
struct machine {
    struct coroutine threads[THREADS];
    int owners[MOST_LOCKS]; /* thread + 1 */
};
extern struct machine now;

extern const struct scenario *scenario;
extern bool exploring; /* each access to shared memory is a scheduling point; otherwise none is */
extern bool found_shared; /* memory that was taken for unshared turned out to be shared */

/* Gives the scenario's threads their stacks, their numbers of operations, and their first state. */
void threads_make(const int *operations);

/* Plays a thread up to the next point; returns false if no valid program would do so. */
bool threads_run(int thread);

/* A state of the machine to return to. The state begins with its `struct machine`. */
struct saved {
    size_t bytes, lines;
    char content[];
};
struct saved *threads_save(void);
void threads_restore(const struct saved *saved);

/* 128 bits that identify a state. */
struct name {
    uint64_t words[2];
};
struct name threads_name(const struct saved *saved);

/* The C library's functions, as the runtime's calls of these names go to threads.c. */
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);

#endif
