/* Explores all interleavings of a few threads that run the runtime's own code.
 *
 * The compiler option -fsanitize=thread makes the runtime call this scheduler at each memory
 * access. The threads are coroutines. The scheduler explores every choice of the next thread. A
 * choice exists at each access to shared memory, at each use of a lock, and at each call of HIP.
 * The scheduler does not examine a state twice. */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3 };

/* The operations of the threads, and the conditions that must always hold. */
struct scenario {
    const char *name;
    const char *const *names;         /* the names of the operations */
    unsigned operations;              /* number of operations, which are numbered from 0 */
    bool exclusive;                   /* MGPU_RT_EXCLUSIVE=on */
    void (*set_up)(bool exclusive);   /* runs once, before the threads exist */
    void (*play)(unsigned operation); /* runs one operation on the calling thread */
    void (*check)(void);              /* runs in each state, even inside operations */
    void (*check_between)(void);      /* runs in each state where no thread is in an operation */
};

/* Defines a scenario with the file's own functions `check` and `check_between`. `list` is a macro
 * that gives its argument the name of each operation, and the call that plays it. */
#define SCENARIO(symbol, title, asks, begins, list)                                                \
    static void symbol##_play(unsigned operation) {                                                \
        unsigned number = 0;                                                                       \
        list(EXPLORE_PLAY)                                                                         \
    }                                                                                              \
    static const char *const symbol##_names[] = {list(EXPLORE_NAME)};                              \
    static const struct scenario symbol##_scenario = {                                             \
        .name = title,                                                                             \
        .names = symbol##_names,                                                                   \
        .operations = sizeof symbol##_names / sizeof *symbol##_names,                              \
        .exclusive = !(asks),                                                                      \
        .set_up = begins,                                                                          \
        .play = symbol##_play,                                                                     \
        .check = check,                                                                            \
        .check_between = check_between,                                                            \
    };                                                                                             \
    static const struct scenario *const explore_##symbol                                           \
        __attribute__((section("scenarios"), used, retain)) = &symbol##_scenario
#define EXPLORE_NAME(name, call) name,
#define EXPLORE_PLAY(name, call)                                                                   \
    if (operation == number++)                                                                     \
        call;

/* Returns the number of the running thread, from 0; -1 if no thread runs. */
int explore_self(void);

/* Lets the scheduler switch to another thread. The model calls this function before each call of
 * HIP. */
void explore_point(void);

/* Returns a number below count; the search tries every number. */
unsigned explore_choose(unsigned count);

/* Abandons the current run, because no valid program would reach this state. */
void explore_prune(void);

/* Returns a nonzero number if no other thread is inside an operation. If two calls in one operation
 * return equal nonzero numbers, no other thread was inside an operation between the calls. */
unsigned explore_lone(void);

/* Gives each thread its own content of a variable with thread storage. */
void explore_own(void *variable, size_t bytes);

/* Ends the exploration if the condition is false, and prints the steps from the start. */
#define explore_require(condition, what) ((condition) ? (void)0 : explore_fail(what))
void explore_fail(const char *what);

/* The scenario's memory, which is a part of each state. The memory is initially zero. */
extern struct world world;

/* Returns true while a thread holds `lock`, whose data may then be inconsistent. */
bool explore_held(const void *lock);

/* The size of `world` in bytes. */
extern const size_t world_size;

#endif
