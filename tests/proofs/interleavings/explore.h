/* Plays all interleavings of a few threads over the runtime's own code.
 *
 * The runtime is compiled with -fsanitize=thread, and the functions that the compiler then calls at
 * each access to memory are this scheduler's. Threads are coroutines: at an access to what several
 * threads use, at a lock and at a call of HIP the scheduler goes on with each of them in turn. A
 * state that was there before is not looked at again. */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3 };

/* What the threads do, and what has to hold. */
struct scenario {
    const char *name;
    unsigned operations;              /* by number, from 0 */
    bool exclusive;                   /* MGPU_RT_EXCLUSIVE=on */
    void (*set_up)(bool exclusive);   /* once, before there are threads */
    void (*play)(unsigned operation); /* one, by the calling thread */
    void (*check)(void);              /* in each state; some threads may be in an operation */
    void (*check_between)(void);      /* in each state in which none is */
    const char *const *names;         /* of the operations */
};

/* One of the file's: its `set_up`, `check` and `check_between`, and this function and list. */
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

/* Ends the calling thread's run, which would not be a valid program's. */
void explore_prune(void);

/* Returns another number than 0 if no other thread is within an operation. It stays the number of
 * before if none has been since. */
unsigned explore_lone(void);

/* Ends the exploration if it does not hold, with the way that has led there. */
#define explore_require(condition, what) ((condition) ? (void)0 : explore_fail(what))
void explore_fail(const char *what);

/* Memory of the scenario's, which is a part of the state. Zero at first. */
extern struct world world;

/* Returns true while `lock` is held by a thread: what it guards may be in between. */
bool explore_held(const void *lock);

/* The bytes of the world. */
extern const size_t world_size;

#endif
