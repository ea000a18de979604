/* The explored threads are coroutines that execute the runtime's code; this file declares the
 * threads and their states.
 *
 * A state contains the threads' stacks, all lines of memory that a thread has ever written,
 * `world`, and the fields below. When a thread first writes to a memory line, all later states also
 * contain the line. If a state does not contain a memory line, the line still has the content that
 * it had before the threads started. */
#ifndef THREADS_H
#define THREADS_H

#include "explore.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_LOCKS = 4 };

enum status { AT_START, AT_OPERATION, AT_CHOICE, AT_ACCESS, AT_LOCK, OVER };

struct coroutine {
    char *stack; /* the saved stack pointer of a thread that does not run */
    struct thread *block;
    int status; /* enum status */
    unsigned choices, chosen;
    int left;         /* operations */
    unsigned waits;   /* the lock for which the thread waits */
    unsigned holds;   /* one bit for each lock that the thread holds */
    size_t allocated; /* bytes allocated from the thread's arena */
    char own[16];     /* the content of the variable that explore_own names */
};

/* The first part of a state. */
struct machine {
    struct coroutine threads[THREADS];
    int owners[MOST_LOCKS]; /* number of the owning thread + 1 */
};
extern struct machine now;

extern const struct scenario *scenario;
extern bool exploring;    /* if true, each access to shared memory is a scheduling point */
extern bool found_shared; /* memory is shared, but the search regarded it as unshared */

/* Sets the scenario's threads up with stacks, numbers of operations, and initial states. */
void threads_make(const int *operations);

/* Runs a thread to its next scheduling point; returns false if only an invalid program reaches this
 * point. */
bool threads_run(int thread);

/* A state to which the search can return. The content begins with a `struct machine`. */
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

/* Functions of the C library; when the runtime calls one of these functions, the linker selects the
 * version in threads.c. */
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);

#endif
