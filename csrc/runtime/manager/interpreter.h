/* Finds the Python that runs the manager. Looks for Python when the manager starts; the build
 * records no interpreter. */
#ifndef MGPU_RT_INTERPRETER_H
#define MGPU_RT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/* The environment's variables about Python, copied in the program's thread because another thread
 * may be changing them. */
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
 * candidate. If MGPU_RT_MANAGER names no interpreter, the order is: the interpreter of `mgpu-rt
 * run`; the library's own environment; VIRTUAL_ENV, CONDA_PREFIX; python3 on the PATH. The caller
 * sets *step to 0 before the first call. Returns false if there is no further interpreter. */
bool interpreter_next(const struct environment_snapshot *around, int *step,
                      struct interpreter *out);

/* The command that starts an interpreter as the manager: up to 8 arguments and NULL. Returns false
 * if no mgpu_rt package was found. */
struct command {
    char script[PATH_MAX + 32];
    char program[16];
    char *arguments[8];
};
void interpreter_command(const struct interpreter *interpreter, struct command *out);

#endif
