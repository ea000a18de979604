/* Declares the functions that a script's steps call, and the tables that map a script's numbers to
 * objects. */
#ifndef SELFTEST_STEPS_H
#define SELFTEST_STEPS_H

#include "abi.h"
#include "player.h"

#include <semaphore.h>

extern int mgpu_rt_empty_cache(void) __attribute__((weak));

/* Finds a function of HIP by its name; HIP(name, parameters) is the function with these parameters.
 */
#define HIP(name, ...) ((int (*)(__VA_ARGS__))foreign(#name))
void (*foreign(const char *name))(void);

/* Prints the error if a call of the foreign user has failed; with a correct runtime, these calls do
 * not fail. */
void check(const struct step *step, int error);

void say_handle(const struct step *step, const void *handle);

enum {
    COPY_DEFAULT = 4,
    COPY_UP = 1,
    COPY_DOWN = 2,
    NON_BLOCKING = 1,
    DISABLE_TIMING = 2,
    NOT_READY = 600
};

extern void *buffers[MOST_OBJECTS], *streams[MOST_OBJECTS], *events[MOST_OBJECTS];
extern void *modules[MOST_OBJECTS], *functions[MOST_OBJECTS];
extern sem_t marks[4 * MOST_OBJECTS];

#define ARGUMENT(n) (step->argument[n])
#define BUFFER(n) buffers[ARGUMENT(n)]
#define STREAM(n) streams[ARGUMENT(n)]
#define EVENT(n) events[ARGUMENT(n)]
#define MODULE(n) modules[ARGUMENT(n)]
#define FUNCTION(n) functions[ARGUMENT(n)]

/* The tables of the steps that each file defines. {NULL, NULL} ends a table. */
struct step_kind {
    const char *name;
    void (*play)(const struct step *step);
};
extern const struct step_kind module_steps[], edge_steps[], graph_steps[], host_steps[];
/* The tables of steps that only the tests' player has (tests/proofs/random/player); NULL ends the
 * list of tables. */
extern const struct step_kind fault_steps[], limit_steps[], replay_steps[], error_steps[];
extern const struct step_kind *const more_steps[] __attribute__((weak));

/* Clears the state of the tests' steps. */
void more_reset(void) __attribute__((weak));

#endif
