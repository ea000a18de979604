/* A program that embeds its own Python: embed RUNTIME IMAGE KERNEL LIBPYTHON MODE.
 *
 *     late      Python is opened and initialised when the library has long been at work
 *     workers   C threads load modules while Python is finalised, and go on
 *     again     Python is initialised, finalised and initialised again, with calls in between */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4 };

static struct {
    void *(*ModuleLoad)(void *, size_t);
    void (*ModuleUnload)(void *);
    void *(*StreamCreate)(void);
    void (*StreamDestroy)(void *);
} mgpu;
static const char *(*manager)(void);

static struct {
    void (*InitializeEx)(int);
    int (*FinalizeEx)(void);
    int (*RunString)(const char *, void *);
    void *(*SaveThread)(void);
    void (*RestoreThread)(void *);
} python;

static char *image;
static size_t image_size;
static atomic_bool stop;
static atomic_uint failures, rounds;

static void *symbol(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(3);
    }
    return found;
}

static void open_runtime(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    *(void **)&mgpu.ModuleLoad = symbol(library, "mgpuModuleLoad");
    *(void **)&mgpu.ModuleUnload = symbol(library, "mgpuModuleUnload");
    *(void **)&mgpu.StreamCreate = symbol(library, "mgpuStreamCreate");
    *(void **)&mgpu.StreamDestroy = symbol(library, "mgpuStreamDestroy");
    *(void **)&manager = dlsym(library, "mgpu_rt_manager");
}

static void open_python(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    *(void **)&python.InitializeEx = symbol(library, "Py_InitializeEx");
    *(void **)&python.FinalizeEx = symbol(library, "Py_FinalizeEx");
    *(void **)&python.RunString = symbol(library, "PyRun_SimpleStringFlags");
    *(void **)&python.SaveThread = symbol(library, "PyEval_SaveThread");
    *(void **)&python.RestoreThread = symbol(library, "PyEval_RestoreThread");
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    image = malloc(1 << 20);
    if (!file || !image)
        exit(3);
    image_size = fread(image, 1, 1 << 20, file);
    fclose(file);
}

/* Loads an image that no other load has used; returns whether the calls succeeded. */
static bool miss(char *copy, uint32_t number) {
    memcpy(copy, image, image_size);
    memcpy(copy + 9, &number, sizeof number);
    void *module = mgpu.ModuleLoad(copy, image_size);
    void *stream = mgpu.StreamCreate();
    mgpu.StreamDestroy(stream);
    if (module)
        mgpu.ModuleUnload(module);
    return module && stream;
}

static bool call(void) {
    static uint32_t number = 1u << 24;
    char *copy = malloc(image_size);
    const bool good = copy && miss(copy, number++);
    free(copy);
    return good;
}

static void *work(void *first) {
    char *copy = malloc(image_size);
    for (uint32_t i = (uint32_t)(uintptr_t)first; !stop; i++) {
        failures += !miss(copy, i);
        rounds++;
    }
    free(copy);
    return NULL;
}

static void wait_until_served(void) {
    while (manager && strcmp(manager(), "starting") == 0)
        usleep(5000);
}

static bool run_script(void) {
    return python.RunString("import sys, zlib, json, threading\n"
                            "assert zlib.crc32(b'abc') == 0x352441c2\n"
                            "assert json.loads('[1]') == [1]\n"
                            "threads = [threading.Thread(target=len, args=([],)) for _ in '1234']\n"
                            "[t.start() for t in threads]; [t.join() for t in threads]\n",
                            NULL) == 0;
}

static bool start_late(const char *library) {
    bool good = call();
    wait_until_served();
    open_python(library);
    python.InitializeEx(0);
    good &= run_script() && call();
    return python.FinalizeEx() == 0 && good && call();
}

static bool work_on(const char *library) {
    pthread_t threads[WORKERS];
    open_python(library);
    python.InitializeEx(0);
    bool good = run_script();
    void *state = python.SaveThread();
    for (uintptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i << 20));
    while (rounds < 50)
        usleep(1000);
    python.RestoreThread(state);
    good &= python.FinalizeEx() == 0;
    const unsigned then = rounds;
    while (rounds < then + 50)
        usleep(1000);
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    return good && failures == 0;
}

static bool start_again(const char *library) {
    bool good = true;
    open_python(library);
    for (int i = 0; i < 4; i++) {
        python.InitializeEx(0);
        good &= run_script() && call();
        if (i == 1)
            wait_until_served();
        good &= python.FinalizeEx() == 0 && call();
    }
    return good;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 3;
    open_runtime(argv[1]);
    read_image(argv[2]);
    const bool good = strcmp(argv[5], "late") == 0      ? start_late(argv[4])
                      : strcmp(argv[5], "workers") == 0 ? work_on(argv[4])
                                                        : start_again(argv[4]);
    puts(good ? "ok" : "failed");
    return good ? 0 : 1;
}
