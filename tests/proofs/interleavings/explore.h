/* Plays all interleavings of a few threads over the runtime's own code.
 *
 * The runtime is compiled with -fsanitize=thread: at each access to memory the compiler then calls
 * functions of this scheduler. Threads are coroutines. At an access to shared memory, a lock or a
 * call of HIP the scheduler continues with each of them in turn. An earlier state is not examined
 * again. */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3 };

/* The operations of the threads, and the conditions that must hold. */
struct scenario {
    const char *name;
    unsigned operations;              /* number of operations, counted from 0 */
    bool exclusive;                   /* MGPU_RT_EXCLUSIVE=on */
    void (*set_up)(bool exclusive);   /* once, before there are threads */
    void (*play)(unsigned operation); /* plays one, on the calling thread */
    void (*check)(void);              /* in each state; some threads may be in an operation */
    void (*check_between)(void);      /* in each state in which no thread is in one */
    const char *const *names;         /* names of the operations */
};

/* A scenario of this file: its `set_up`, `check` and `check_between`, and this function and
 * list. */
#define SCENARIO(title, asks, count, plays, list)                                                  \
    {.name = title,                                                                                \
     .operations = count,                                                                          \
     .exclusive = !(asks),                                                                         \
     .set_up = set_up,                                                                             \
     .play = plays,                                                                                \
     .check = check,                                                                               \
     .check_between = check_between,                                                               \
     .names = list}

/* Returns the thread that plays, from 0; -1: none. */
int explore_self(void);

/* Marks a point before which another thread may call HIP. */
void explore_point(void);

/* Returns any number below count: each is tried. */
unsigned explore_choose(unsigned count);

/* Ends the calling thread's run, as no valid program would make it. */
void explore_prune(void);

/* Returns a nonzero number if no other thread is within an operation. The number stays unchanged if
 * no other thread has been since. */
unsigned explore_lone(void);

/* Ends the exploration if the condition does not hold, with the way to the state. */
#define explore_require(condition, what) ((condition) ? (void)0 : explore_fail(what))
void explore_fail(const char *what);

/* The scenario's memory, which is a part of the state. The memory begins as zeros. */
extern struct world world;

/* Returns true while a thread holds `lock`: its data may then be incomplete. */
bool explore_held(const void *lock);

/* The size of the world in bytes. */
extern const size_t world_size;

#endif
