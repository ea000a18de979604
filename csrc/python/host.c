/* libmgpu_rt_python.so: runs a Python interpreter in the program for MGPU_RT_RUNTIME.
 *
 * One binary serves Python 3.10 and later: all of these versions have the same layout of
 * PyPreConfig, and accept the flags from before 3.8. All functions are looked up by name, because
 * nothing links to libpython. */
#include "abi/python_plugin.h"
#include "stack.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

static const struct python_host *host;

enum { OLDEST_MINOR = 10 };

/* The members of CPython's PyPreConfig. A newer CPython may write more members, into `room`. */
struct preconfig {
    int init, parse_argv, isolated, use_environment, configure_locale, coerce_c_locale,
        coerce_c_locale_warn, utf8_mode, dev_mode, allocator;
    int room[16];
};
struct status {
    int type;
    const char *function, *message;
    int exit_code;
};

#define PYTHON_FUNCTIONS                                                                           \
    PYTHON_FN(int, Py_IsInitialized, (void))                                                       \
    PYTHON_FN(void, PyPreConfig_InitIsolatedConfig, (struct preconfig *))                          \
    PYTHON_FN(struct status, Py_PreInitialize, (const struct preconfig *))                         \
    PYTHON_FN(wchar_t *, Py_DecodeLocale, (const char *, size_t *))                                \
    PYTHON_FN(void, Py_SetProgramName, (const wchar_t *))                                          \
    PYTHON_FN(void, Py_InitializeEx, (int))                                                        \
    PYTHON_FN(void *, PyEval_SaveThread, (void))                                                   \
    PYTHON_FN(void, PyEval_RestoreThread, (void *))                                                \
    PYTHON_FN(int, PyGILState_Check, (void))                                                       \
    PYTHON_FN(int, PyGILState_Ensure, (void))                                                      \
    PYTHON_FN(void, PyGILState_Release, (int))                                                     \
    PYTHON_FN(int, PyRun_SimpleString, (const char *))

struct python {
#define PYTHON_FN(result, name, params) result(*name) params;
    PYTHON_FUNCTIONS
#undef PYTHON_FN
};

static bool find_functions(void *library, struct python *out) {
#define PYTHON_FN(result, name, params)                                                            \
    if (!(*(void **)&out->name = dlsym(library, #name)))                                           \
        return false;
    PYTHON_FUNCTIONS
#undef PYTHON_FN
    return true;
}

static _Noreturn void fail(const char *what, const char *detail) {
    fprintf(stderr, "mgpu_rt: MGPU_RT_RUNTIME: %s%s\n", what, detail);
    fflush(stdout);
    _exit(1); /* not exit(), whose handlers would find a half-initialised runtime */
}

/* ---- the program's own ---- */

/* Returns true if the program contains an interpreter, started or not. */
static bool find_present(struct python *out) {
    char path[PATH_MAX];
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
        return find_functions(RTLD_DEFAULT, out);
    void *library = host->mapped_library("libpython3.", path, sizeof path);
    return library && find_functions(library, out);
}

static void *let_go(void) {
    struct python py;
    if (!find_present(&py) || !py.Py_IsInitialized() || !py.PyGILState_Check())
        return NULL;
    return py.PyEval_SaveThread();
}

static void take_back(void *gil) {
    struct python py;
    if (gil && find_present(&py))
        py.PyEval_RestoreThread(gil);
}

/* ---- one that is started ---- */

/* Returns the name of an interpreter's file after links are resolved: python3.11. Returns NULL if
 * that name has no version. */
static const char *versioned_name(const char *real) {
    const char *name = strrchr(real, '/');
    name = name ? name + 1 : real;
    return strncmp(name, "python3.", 8) == 0 && strtol(name + 8, NULL, 10) >= OLDEST_MINOR ? name
                                                                                           : NULL;
}

/* Opens libpython from the interpreter's own installation, or else from the loader's directories.
 * Opens libpython with RTLD_GLOBAL, because extension modules expect to find its symbols. */
static void *open_library(const char *real, const char *name) {
    char path[PATH_MAX + 64];
    const int folder = (int)(strrchr(real, '/') - real);
    snprintf(path, sizeof path, "%.*s/../lib/lib%s.so.1.0", folder, real, name);
    void *beside = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    if (beside)
        return beside;
    snprintf(path, sizeof path, "lib%s.so.1.0", name);
    return dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
}

/* Returns NULL, or the reason why this interpreter cannot run in the program. */
static const char *open_interpreter(const char *path, void **library, struct python *out) {
    char real[PATH_MAX];
    const char *name = realpath(path, real) ? versioned_name(real) : NULL;
    if (!name)
        return "it is not Python 3.10 or later";
    *library = open_library(real, name);
    if (!*library)
        return "its libpython was not found (Debian has it as libpython3-dev)";
    return find_functions(*library, out) ? NULL : "its libpython lacks functions that start Python";
}

static void set_flag(void *library, const char *name) {
    int *flag = dlsym(library, name);
    if (flag)
        *flag = 1;
}

/* Python starts as if the interpreter were the executable, so that it finds the packages of the
 * interpreter's environment. Python uses UTF-8 without reading the locale, ignores Python's
 * variables, and installs no signal handlers. Python writes no bytecode: on a full disk, Python
 * would leave a file that later runs cannot import. */
static void start(void *library, const struct python *py, const char *program) {
    struct preconfig before;
    struct stat input;
    if (fstat(0, &input) == 0 && S_ISDIR(input.st_mode))
        fail("standard input is a directory, and Python does not start with one: redirect it", "");
    py->PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    const struct status status = py->Py_PreInitialize(&before);
    if (status.type != 0)
        fail("Python cannot be started: ", status.message ? status.message : "");
    set_flag(library, "Py_IgnoreEnvironmentFlag");
    set_flag(library, "Py_NoUserSiteDirectory");
    set_flag(library, "Py_DontWriteBytecodeFlag");
    py->Py_SetProgramName(py->Py_DecodeLocale(program, NULL));
    py->Py_InitializeEx(0);
    /* The first import of Python's module `signal` installs a handler for SIGINT. With that
     * handler, Ctrl-C would not end the program. */
    py->PyRun_SimpleString("import _signal\n"
                           "if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:\n"
                           "    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)\n"
                           "del _signal\n");
    (void)py->PyEval_SaveThread();
}

static void start_own(struct python *out) {
    char path[PATH_MAX] = "", text[PATH_MAX + 128];
    void *library = NULL;
    const char *reason = host->interpreter_find(path) ? open_interpreter(path, &library, out)
                                                      : "neither make nor pip has recorded one";
    if (reason) {
        snprintf(text, sizeof text, "'%s' (%s)", path, reason);
        fail("found no Python to load into the program: set MGPU_RT_MANAGER to one with a "
             "libpython. ",
             text);
    }
    start(library, out, path);
}

/* ---- the class ---- */

/* Runs a function of the package mgpu_rt to which this library belongs. Python gets the address of
 * the texts. */
static bool run_package(const struct python *py, const char *wanted, bool owned) {
    static const char code[] =
        "def _mgpu_rt(address):\n"
        "    import ctypes, os, runpy\n"
        "    texts = ctypes.cast(address, ctypes.POINTER(ctypes.c_char_p))\n"
        "    home, *given = map(os.fsdecode, texts[:5])\n"
        "    runpy.run_path(home + '/mgpu_rt/runtime/_begin.py')['begin'](home, *given)\n"
        "_mgpu_rt(%lu)\n"
        "del _mgpu_rt\n";
    char home[PATH_MAX], text[sizeof code + 32];
    if (!host->mapped_home(home))
        fail("the folder of the package mgpu_rt is not known", "");
    const char *const texts[] = {home, wanted, owned ? "owned" : "", host->version, host->library};
    snprintf(text, sizeof text, code, (unsigned long)texts);
    const int gil = py->PyGILState_Ensure();
    const bool good = py->PyRun_SimpleString(text) == 0;
    py->PyGILState_Release(gil);
    return good;
}

static bool create(const char *wanted) {
    struct python py;
    if (!stack_has_room())
        return false;
    const bool present = find_present(&py);
    if (present && !py.Py_IsInitialized())
        fail("the program's interpreter has not started, or is over", "");
    if (!present)
        start_own(&py);
    if (!run_package(&py, wanted, !present))
        fail("the program ends, because this runtime could not be made: ", wanted);
    return true;
}

__attribute__((visibility("default"))) plugin_entry mgpu_rt_python;

const void *mgpu_rt_python(const void *of_runtime) {
    static const struct python_plugin plugin = {let_go, take_back, create};
    host = of_runtime;
    return &plugin;
}
