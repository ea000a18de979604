/* Hosts the policy in Python.
 *
 * libpython is not linked against (0.9 ms in every process that loads this library). At the first
 * miss the interpreter that the process has is taken, else the configured one, which started while
 * HIP did. Only functions that exist unchanged from 3.10 to 3.13 are used, so one binary
 * serves all of them. A program never dies because of Python: whatever fails here is said in one
 * line, and the built-in policy serves.
 *
 * Beside HIP's start only Py_InitializeEx runs, without the loader's lock, which the waiting thread
 * may hold: the program may come here from a constructor in dlopen. What does need the loader is
 * done in the program's own thread: opening libpython before, importing the policy at the first
 * miss. */
#include "python.h"
#include "mapped.h"
#include "runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

struct object; /* PyObject */

#define PYTHON_FUNCTIONS                                                                           \
    PYTHON_FN(int, Py_IsInitialized, (void))                                                       \
    PYTHON_FN(wchar_t *, Py_DecodeLocale, (const char *, size_t *))                                \
    PYTHON_FN(void, Py_SetProgramName, (const wchar_t *))                                          \
    PYTHON_FN(void, Py_InitializeEx, (int))                                                        \
    PYTHON_FN(void *, PyEval_SaveThread, (void))                                                   \
    PYTHON_FN(int, PyGILState_Ensure, (void))                                                      \
    PYTHON_FN(void, PyGILState_Release, (int))                                                     \
    PYTHON_FN(struct object *, PySys_GetObject, (const char *))                                    \
    PYTHON_FN(struct object *, PyUnicode_FromString, (const char *))                               \
    PYTHON_FN(int, PyList_Append, (struct object *, struct object *))                              \
    PYTHON_FN(struct object *, PyImport_ImportModule, (const char *))                              \
    PYTHON_FN(struct object *, PyObject_CallMethod,                                                \
              (struct object *, const char *, const char *, ...))                                  \
    PYTHON_FN(void, PyErr_Fetch, (struct object **, struct object **, struct object **))           \
    PYTHON_FN(struct object *, PyObject_Str, (struct object *))                                    \
    PYTHON_FN(const char *, PyUnicode_AsUTF8AndSize, (struct object *, ssize_t *))                 \
    PYTHON_FN(void, Py_DecRef, (struct object *))

struct python {
#define PYTHON_FN(result, name, params) result(*name) params;
    PYTHON_FUNCTIONS
#undef PYTHON_FN
};

enum { PATIENCE = 10 }; /* seconds after which a start that hangs is given up */

enum state { UNTRIED, STARTING, SERVING, ABSENT };
static _Atomic int state = UNTRIED;
static const struct mgpu_policy *_Atomic serving;
static bool owned; /* the interpreter was started here */
struct policy_cost policy_cost;

static struct advice no_python = {
    .text = "no Python for the module cache (%s): going on with the built-in policy, which keeps "
            "everything. Set MGPU_RT_PYTHON to an interpreter that has cffi, or to off"};

static bool resolve(struct python *python, void *library) {
#define PYTHON_FN(result, name, params)                                                            \
    *(void **)&python->name = dlsym(library, #name);                                               \
    if (!python->name)                                                                             \
        return false;
    PYTHON_FUNCTIONS
#undef PYTHON_FN
    return true;
}

/* The interpreter of this process: linked in, or a library, however it was opened. */
static bool find_present(struct python *python) {
    char path[PATH_MAX];
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
        return resolve(python, RTLD_DEFAULT);
    void *library = mapped_library("libpython3.", path, sizeof path);
    return library && resolve(python, library);
}

/* An interpreter to start: itself, its libpython, and where its packages are. */
struct configured {
    char interpreter[PATH_MAX], library[PATH_MAX], packages[PATH_MAX];
};

static bool read_line(FILE *input, char *line, size_t size) {
    if (!fgets(line, (int)size, input))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* Asks the interpreter that MGPU_RT_PYTHON names; costs a start of it (20 to 50 ms). */
static bool ask_interpreter(struct configured *python, char *reason, size_t size) {
    char command[PATH_MAX + 256];
    snprintf(python->interpreter, sizeof python->interpreter, "%s", options.python);
    if (strchr(options.python, '\'') || access(options.python, X_OK) != 0) {
        snprintf(reason, size, "'%s' cannot be run", options.python);
        return false;
    }
    snprintf(command, sizeof command,
             "'%s' -I -c 'import sysconfig as s; print(s.get_config_var(\"LIBDIR\") + \"/\" + "
             "s.get_config_var(\"INSTSONAME\")); print(s.get_path(\"platlib\"))'",
             options.python);
    FILE *output = popen(command, "re");
    const bool read = output && read_line(output, python->library, sizeof python->library) &&
                      read_line(output, python->packages, sizeof python->packages);
    if (output)
        pclose(output);
    if (!read)
        snprintf(reason, size, "'%s' did not say where its libpython is", options.python);
    return read;
}

static bool find_configured(struct configured *python, char *reason, size_t size) {
    if (options.python[0])
        return ask_interpreter(python, reason, size);
    *python = (struct configured){MGPU_RT_DEFAULT_PYTHON, MGPU_RT_DEFAULT_LIBPYTHON,
                                  MGPU_RT_DEFAULT_PACKAGES};
    if (access(python->interpreter, X_OK) == 0)
        return true;
    snprintf(reason, size, "'%s' is not there", python->interpreter);
    return false;
}

/* Sets the global flags of Python's from before 3.12's configuration, which 3.10 to 3.13 obey, so
 * that it starts independent of the host's environment: a PYTHONHOME meant for another one would
 * end the process. Without `site`, whose .pth files would cost up to 20 ms; the one directory that
 * is needed is added by hand. False if there is no such flag. */
static bool set_flags(void *library) {
    static const char *const names[] = {"Py_IgnoreEnvironmentFlag", "Py_NoSiteFlag",
                                        "Py_NoUserSiteDirectory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int *flag = dlsym(library, names[i]);
        if (!flag)
            return false;
        *flag = 1;
    }
    return true;
}

/* Starts an interpreter as if it were the executable. No signal handlers are installed, and the
 * locale, which Python takes from the environment, is put back. */
static bool start_interpreter(const struct python *python, const char *interpreter) {
    const wchar_t *program = python->Py_DecodeLocale(interpreter, NULL); /* Python keeps it */
    char *locale = strdup(setlocale(LC_CTYPE, NULL));
    if (program) {
        python->Py_SetProgramName(program);
        python->Py_InitializeEx(0);
    }
    if (locale)
        setlocale(LC_CTYPE, locale);
    free(locale);
    owned = program && python->Py_IsInitialized();
    return owned;
}

static void add_to_path(const struct python *python, const char *directory) {
    struct object *path = python->PySys_GetObject("path");
    struct object *entry = python->PyUnicode_FromString(directory);
    if (path && entry)
        python->PyList_Append(path, entry); /* last: nothing of the host's is shadowed */
    if (entry)
        python->Py_DecRef(entry);
}

/* The interpreter to start where the process has none. */
static struct {
    struct configured configured; /* 12 KB: too much for a small stack */
    struct python python;
} own;

static bool open_own(char *reason, size_t size) {
    if (!find_configured(&own.configured, reason, size))
        return false;
    /* Extension modules expect libpython's names to be global. Lazy: 2 ms less. */
    void *library = dlopen(own.configured.library, RTLD_LAZY | RTLD_GLOBAL);
    const bool good = library && resolve(&own.python, library) && set_flags(library);
    if (!library)
        snprintf(reason, size, "%s", dlerror());
    else if (!good)
        snprintf(reason, size, "'%s' is not a Python 3.10 to 3.13", own.configured.library);
    return good;
}

static bool start_own(char *reason, size_t size) {
    if (!start_interpreter(&own.python, own.configured.interpreter)) {
        snprintf(reason, size, "'%s' cannot be started", own.configured.library);
        return false;
    }
    add_to_path(&own.python, own.configured.packages);
    own.python.PyEval_SaveThread();
    return true;
}

/* The text of the current exception, which is cleared. */
static void take_error(const struct python *python, char *reason, size_t size) {
    struct object *type = NULL, *value = NULL, *traceback = NULL;
    python->PyErr_Fetch(&type, &value, &traceback);
    struct object *text = value ? python->PyObject_Str(value) : NULL;
    const char *utf8 = text ? python->PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(reason, size, "%s", utf8 ? utf8 : "unknown error");
    if (text)
        python->Py_DecRef(text);
    if (traceback)
        python->Py_DecRef(traceback);
    if (value)
        python->Py_DecRef(value);
    if (type)
        python->Py_DecRef(type);
}

static void attach(const struct mgpu_policy *policy) {
    serving = policy;
}

static bool import_policy(const struct python *python, char *reason, size_t size) {
    char home[PATH_MAX];
    if (!mapped_home(home, sizeof home)) {
        snprintf(reason, size, "the library's own path is not known");
        return false;
    }
    const int gil = python->PyGILState_Ensure();
    add_to_path(python, home);
    struct object *module = python->PyImport_ImportModule("mgpu_rt.host");
    struct object *done =
        module ? python->PyObject_CallMethod(module, "start", "KKi",
                                             (unsigned long long)(uintptr_t)&host_functions,
                                             (unsigned long long)(uintptr_t)attach, (int)owned)
               : NULL;
    if (!done)
        take_error(python, reason, size);
    if (done)
        python->Py_DecRef(done);
    if (module)
        python->Py_DecRef(module);
    python->PyGILState_Release(gil);
    return done != NULL && serving != NULL;
}

/* Returns the state that follows. */
static int start(void) {
    struct python python = {0};
    char reason[PATH_MAX + 64] = "";
    host_start();
    if (find_present(&python)) {
        if (!python.Py_IsInitialized())
            return UNTRIED; /* the host program will start it, or has ended it: it is not ours */
    } else if (open_own(reason, sizeof reason) && start_own(reason, sizeof reason)) {
        python = own.python;
    } else {
        report_once(&no_python, reason);
        return ABSENT;
    }
    if (!import_policy(&python, reason, sizeof reason)) {
        report_once(&no_python, reason);
        return ABSENT;
    }
    report_verbose("policy in Python (%s)",
                   owned ? "an interpreter of its own" : "the interpreter of this process");
    return SERVING;
}

/* Makes the calling thread the one that starts Python. */
static bool begin(void) {
    int expected = UNTRIED;
    return state == UNTRIED && options.cache_on && strcmp(options.python, "off") != 0 &&
           !runtime_exiting() && !runtime_forked &&
           atomic_compare_exchange_strong(&state, &expected, STARTING);
}

/* ---- beside HIP ---- */

static void *start_beside(void *unused) {
    char reason[PATH_MAX + 64];
    (void)unused;
    (void)start_own(reason,
                    sizeof reason); /* if it fails, the first miss tries again and says it */
    return NULL;
}

/* The program's signals are for the program's threads. */
static bool create_deaf_thread(pthread_t *thread) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool created = pthread_create(thread, NULL, start_beside, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return created;
}

bool policy_prepare(pthread_t *starter) {
    struct python present = {0};
    char reason[PATH_MAX + 64];
    const uint64_t since = stats_now();
    if (!begin())
        return false;
    const bool started =
        !find_present(&present) && open_own(reason, sizeof reason) && create_deaf_thread(starter);
    if (!started)
        state = UNTRIED; /* the first miss will look again, and say why */
    policy_cost.opening = stats_now() - since;
    return started;
}

void policy_prepared(pthread_t starter) {
    const uint64_t since = stats_now();
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE;
    const bool done = pthread_timedjoin_np(starter, NULL, &deadline) == 0;
    if (!done) {
        report_once(&no_python, "it has not started within ten seconds");
        pthread_detach(starter);
    }
    state = done ? UNTRIED : ABSENT;
    policy_cost.waiting = stats_now() - since;
}

/* ---- which policy serves ---- */

const struct mgpu_policy *policy_peek(void) {
    return state == SERVING && !runtime_forked ? serving : NULL;
}

const struct mgpu_policy *policy_get(void) {
    if (hip_path()[0] && begin()) {
        const uint64_t since = stats_now();
        state = start();
        policy_cost.importing = stats_now() - since;
        report_verbose("Python: %.1f ms to open it, %.1f ms waited for beyond HIP's start, %.1f ms "
                       "to import the policy",
                       (double)policy_cost.opening / 1e6, (double)policy_cost.waiting / 1e6,
                       (double)policy_cost.importing / 1e6);
    }
    const struct mgpu_policy *policy = policy_peek();
    return policy ? policy : &policy_builtin;
}

void policy_detach(void) {
    state = ABSENT;
}
