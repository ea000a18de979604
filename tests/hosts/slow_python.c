/* A libpython whose start takes until HIP's has begun, or for ever (SLOW_PYTHON=for-ever), and
 * which can then import nothing. It says whether it would have taken the program's signals. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

int Py_IgnoreEnvironmentFlag, Py_NoSiteFlag, Py_NoUserSiteDirectory;
static volatile int initialized;

/* The stub of HIP counts its calls. */
static bool hip_starts(void) {
    static uint64_t (*count)(const char *function);
    void *hip = count ? NULL : dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW | RTLD_NOLOAD);
    if (hip)
        *(void **)&count = dlsym(hip, "hipstub_count");
    return count && count("hipInit") > 0;
}

void Py_InitializeEx(int signals) {
    const char *how = getenv("SLOW_PYTHON");
    sigset_t blocked;
    (void)signals;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGALRM) || !sigismember(&blocked, SIGINT))
        fputs("the thread takes signals\n", stderr);
    while ((how && strcmp(how, "for-ever") == 0) || !hip_starts())
        usleep(1000);
    fputs("HIP and Python start at once\n", stderr);
    initialized = 1;
}

int Py_IsInitialized(void) {
    return initialized;
}
wchar_t *Py_DecodeLocale(const char *text, size_t *size) {
    static wchar_t program[] = L"python";
    (void)text, (void)size;
    return program;
}
void Py_SetProgramName(const wchar_t *name) {
    (void)name;
}
void *PyEval_SaveThread(void) {
    return NULL;
}
int PyGILState_Ensure(void) {
    return 0;
}
void PyGILState_Release(int state) {
    (void)state;
}
void *PySys_GetObject(const char *name) {
    (void)name;
    return NULL;
}
void *PyUnicode_FromString(const char *text) {
    (void)text;
    return NULL;
}
int PyList_Append(void *list, void *entry) {
    (void)list, (void)entry;
    return 0;
}
void *PyImport_ImportModule(const char *name) {
    (void)name;
    return NULL;
}
void *PyObject_CallMethod(void *object, const char *name, const char *format, ...) {
    (void)object, (void)name, (void)format;
    return NULL;
}
void PyErr_Fetch(void **type, void **value, void **traceback) {
    *type = *value = *traceback = NULL;
}
void *PyObject_Str(void *object) {
    return object;
}
const char *PyUnicode_AsUTF8AndSize(void *text, ssize_t *size) {
    (void)text, (void)size;
    return NULL;
}
void Py_DecRef(void *object) {
    (void)object;
}
