/* Which Python runs the manager. Decided when it is started, nothing is compiled in. */
#ifndef MGPU_RT_INTERPRETER_H
#define MGPU_RT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/* The environment's words on Python, read in the program's thread: another one may be changing
 * it. */
struct environment_snapshot {
    char *run_python, *virtual_env, *conda_prefix, *search, *libraries, *home, *modules;
};

void environment_snapshot_read(struct environment_snapshot *out);

struct interpreter {
    char path[PATH_MAX];
    const char *because; /* what named it */
    bool foreign;        /* not the user's choice and not the library's own environment */
};

/* Finds the next interpreter to try. MGPU_RT_MANAGER's is the only one, if it names one. Else the
 * order is: the one that `mgpu-rt run` runs in; the environment that the library was installed
 * into; VIRTUAL_ENV, CONDA_PREFIX; python3 on the PATH. *step begins with 0. False if there is none
 * left. */
bool interpreter_next(const struct environment_snapshot *around, int *step,
                      struct interpreter *out);

/* How an interpreter is asked to be the manager: up to 8 arguments and NULL. False if the package
 * cannot be told. */
struct command {
    char script[PATH_MAX + 32];
    char program[16];
    char *arguments[8];
};
void interpreter_command(const struct interpreter *interpreter, struct command *out);

#endif
