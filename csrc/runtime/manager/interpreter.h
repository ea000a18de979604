/* Finds the Python that runs the manager. Looks for Python when the manager starts; the build
 * records no interpreter. */
#ifndef MGPU_RT_INTERPRETER_H
#define MGPU_RT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/* The environment variables by which the library finds Python. A thread of the program copies the
 * variables, because the program may change its environment while the manager's thread runs. */
struct environment_snapshot {
    char *run_python, *virtual_env, *conda_prefix, *search, *libraries, *home, *modules;
};

void environment_snapshot_read(struct environment_snapshot *out);

struct interpreter {
    char path[PATH_MAX];
    const char *because; /* the variable or file that named the interpreter */
    bool foreign;        /* neither the user nor the library's own environment named the interpreter
                          */
};

/* Finds the next interpreter to try. If MGPU_RT_MANAGER names an interpreter, there is no other
 * candidate. Otherwise the first candidate is the interpreter of `mgpu-rt run`, and the second is
 * the interpreter of the library's own environment. VIRTUAL_ENV, CONDA_PREFIX and the PATH name the
 * next candidates, in this order. The caller sets *step to 0 before the first call. Returns false
 * if there is no further interpreter. */
bool interpreter_next(const struct environment_snapshot *around, int *step,
                      struct interpreter *out);

/* The command that starts an interpreter as the manager: 7 arguments at most, and NULL. */
struct command {
    char script[PATH_MAX + 32];
    char program[16];
    char *arguments[8];
};
void interpreter_command(const struct interpreter *interpreter, struct command *out);

#endif
