/* Finds the Python that runs the manager. The Python is found when the manager is started; nothing
 * is compiled in. */
#ifndef MGPU_RT_INTERPRETER_H
#define MGPU_RT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/* The environment's variables about Python, read in the program's thread: another thread may be
 * changing them. */
struct environment_snapshot {
    char *run_python, *virtual_env, *conda_prefix, *search, *libraries, *home, *modules;
};

void environment_snapshot_read(struct environment_snapshot *out);

struct interpreter {
    char path[PATH_MAX];
    const char *because; /* what named it */
    bool foreign;        /* not the user's choice and not the library's own environment */
};

/* Finds the next interpreter to try. If MGPU_RT_MANAGER names one, it is the only one. If not, the
 * order is: the one that `mgpu-rt run` runs in; the environment that the library was installed
 * into; VIRTUAL_ENV, CONDA_PREFIX; python3 on the PATH. *step begins with 0. Returns false if there
 * is none left. */
bool interpreter_next(const struct environment_snapshot *around, int *step,
                      struct interpreter *out);

/* The command that starts an interpreter as the manager: up to 8 arguments and NULL. Returns false
 * if the package is not known. */
struct command {
    char script[PATH_MAX + 32];
    char program[16];
    char *arguments[8];
};
void interpreter_command(const struct interpreter *interpreter, struct command *out);

#endif
