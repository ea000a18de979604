#include "manager/interpreter.h"
#include "process/mapped.h"
#include "process/options.h"
#include "proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *copy_variable(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? strdup(value) : NULL;
}

void environment_snapshot_read(struct environment_snapshot *out) {
    out->run_python = copy_variable("MGPU_RT_RUN_PYTHON");
    out->virtual_env = copy_variable("VIRTUAL_ENV");
    out->conda_prefix = copy_variable("CONDA_PREFIX");
    out->search = copy_variable("PATH");
    out->libraries = copy_variable("LD_LIBRARY_PATH");
    out->home = copy_variable("HOME");
    out->modules = copy_variable("PYTHONPATH");
}

static bool is_program(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

/* Writes the path of a file in a folder to `out`. Returns false if the path is longer than
 * PATH_MAX. */
static bool join_folder(char *out, const char *directory, const char *name) {
    const int length = snprintf(out, PATH_MAX, "%s/%s", directory, name);
    return length > 0 && length < PATH_MAX;
}

/* ---- the ways to find one; each fills `path` ---- */

static bool from_prefix(const char *prefix, char *path) {
    return prefix && join_folder(path, prefix, "bin/python3") && is_program(path);
}

static bool from_search(const char *search, const char *name, char *path) {
    char directories[PATH_MAX];
    char *rest = directories;
    snprintf(directories, sizeof directories, "%s",
             search ? search : "/usr/local/bin:/usr/bin:/bin");
    for (char *directory = strsep(&rest, ":"); directory; directory = strsep(&rest, ":"))
        if (directory[0] == '/' && join_folder(path, directory, name) && is_program(path))
            return true;
    return false;
}

/* Reads the interpreter's path from a one-line file beside the library. A build in a checkout or
 * `make install` has written this file. */
static bool from_note(const char *home, char *path) {
    static const char *const places[] = {"build/lib/mgpu_rt.python", "mgpu_rt/lib/mgpu_rt.python"};
    char note[PATH_MAX];
    FILE *file = NULL;
    for (size_t i = 0; !file && i < sizeof places / sizeof *places; i++)
        file = join_folder(note, home, places[i]) ? fopen(note, "re") : NULL;
    const bool read = file && fgets(path, PATH_MAX, file);
    if (file)
        fclose(file);
    if (read)
        path[strcspn(path, "\n")] = '\0';
    return read && is_program(path);
}

/* Removes the last part of a path and returns that part. Returns NULL if the path contains no
 * slash. */
static char *cut(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return slash + 1;
}

/* PREFIX/lib/python3.11/site-packages implies the interpreter PREFIX/bin/python3.11. */
static bool from_packages(const char *packages, char *path) {
    char prefix[PATH_MAX], name[64], program[80];
    snprintf(prefix, sizeof prefix, "%s", packages);
    const char *last = cut(prefix);
    if (!last || (strcmp(last, "site-packages") != 0 && strcmp(last, "dist-packages") != 0))
        return false;
    const char *version = cut(prefix);
    if (!version || strncmp(version, "python3", 7) != 0 || strlen(version) >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%s", version);
    snprintf(program, sizeof program, "bin/%s", name);
    return cut(prefix) && ((join_folder(path, prefix, program) && is_program(path)) ||
                           (join_folder(path, prefix, "bin/python3") && is_program(path)));
}

static bool from_installation(char *path) {
    char home[PATH_MAX];
    return mapped_home(home, sizeof home) && (from_note(home, path) || from_packages(home, path));
}

static bool from_option(const char *search, char *path) {
    if (strchr(options.python, '/') || !from_search(search, options.python, path))
        snprintf(path, PATH_MAX, "%s", options.python);
    return true; /* the library reports a wrong path when it starts the manager */
}

/* ---- the order ---- */

enum step { OPTION, RUN, INSTALLATION, VENV, CONDA, SEARCH, STEPS };

static bool look_for(const struct environment_snapshot *around, enum step step, char *path) {
    switch (step) {
    case OPTION:
        return options.python[0] && from_option(around->search, path);
    case RUN:
        if (around->run_python)
            snprintf(path, PATH_MAX, "%s", around->run_python);
        return around->run_python && is_program(path);
    case INSTALLATION:
        return from_installation(path);
    case VENV:
        return from_prefix(around->virtual_env, path);
    case CONDA:
        return from_prefix(around->conda_prefix, path);
    case SEARCH:
        return from_search(around->search, "python3", path);
    default:
        return false;
    }
}

bool interpreter_next(const struct environment_snapshot *around, int *step,
                      struct interpreter *out) {
    static const char *const reasons[STEPS] = {
        "MGPU_RT_MANAGER", "mgpu-rt run",  "where the library is",
        "VIRTUAL_ENV",     "CONDA_PREFIX", "PATH",
    };
    const int end = DOUBT(user_named_a_python, options.python[0]) ? OPTION + 1 : STEPS;
    while (*step < end) {
        const enum step now = (enum step)(*step)++;
        if (!look_for(around, now, out->path))
            continue;
        out->because = reasons[now];
        out->foreign = DOUBT(python_is_not_the_installations, now >= VENV);
        return true;
    }
    return false;
}

/* -I: Python ignores the environment, the current directory and the user's packages. -X utf8:
 * Python needs no codec of the locale. -B: Python writes no bytecode files, because a full disk
 * would truncate such a file. The manager gets the program's process ID as its argument. */
void interpreter_command(const struct interpreter *interpreter, struct command *out) {
    char home[PATH_MAX];
    const bool beside =
        mapped_home(home, sizeof home) &&
        snprintf(out->script, sizeof out->script, "%s/mgpu_rt/manager/_manager.py", home) > 0 &&
        access(out->script, R_OK) == 0;
    int count = 0;
    out->arguments[count++] = (char *)interpreter->path;
    out->arguments[count++] = (char *)"-IB";
    out->arguments[count++] = (char *)"-X";
    out->arguments[count++] = (char *)"utf8";
    if (beside) {
        out->arguments[count++] = out->script;
    } else {
        out->arguments[count++] = (char *)"-m";
        out->arguments[count++] = (char *)"mgpu_rt.manager._manager";
    }
    snprintf(out->program, sizeof out->program, "%ld", (long)getpid());
    out->arguments[count++] = out->program;
    out->arguments[count] = NULL;
}
