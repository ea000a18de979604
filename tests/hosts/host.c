/* A program that is no Python, for the tests of hosting: host LIBRARY IMAGE KERNEL MODE.
 *
 * Prints "ok" when everything it asked for was answered. It reaches the library by dlopen, so that
 * one binary tests every way of loading. */
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    void *(*ModuleLoad)(void *, size_t);
    void (*ModuleUnload)(void *);
    void *(*ModuleGetFunction)(void *, const char *);
    void *(*StreamCreate)(void);
    void (*StreamDestroy)(void *);
    void (*StreamSynchronize)(void *);
    void (*LaunchKernel)(void *, long, long, long, long, long, long, int, void *, void **, void **,
                         size_t);
} mgpu;

static void *library;
static char *image;
static size_t image_size;
static const char *kernel;

static void open_library(const char *path, int flags) {
    library = dlopen(path, flags);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define FIND(name) *(void **)&mgpu.name = dlsym(library, "mgpu" #name)
    FIND(ModuleLoad);
    FIND(ModuleUnload);
    FIND(ModuleGetFunction);
    FIND(StreamCreate);
    FIND(StreamDestroy);
    FIND(StreamSynchronize);
    FIND(LaunchKernel);
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(3);
    fseek(file, 0, SEEK_END);
    image_size = (size_t)ftell(file);
    rewind(file);
    image = malloc(image_size);
    if (!image || fread(image, 1, image_size, file) != image_size)
        exit(3);
    fclose(file);
}

/* One launch as LLVM 20 and older make it; true if everything was answered. */
static bool launch_once(void) {
    void *module = mgpu.ModuleLoad(image, 0);
    void *function = mgpu.ModuleGetFunction(module, kernel);
    void *stream = mgpu.StreamCreate();
    mgpu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL, 0);
    mgpu.StreamSynchronize(stream);
    mgpu.StreamDestroy(stream);
    mgpu.ModuleUnload(module);
    return module && function && stream;
}

static void *launch_in_thread(void *good) {
    *(bool *)good = launch_once();
    return NULL;
}

static bool in_threads(int count) {
    pthread_t threads[16];
    bool good[16] = {false}, all = true;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, launch_in_thread, &good[i]);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        all &= good[i];
    }
    return all;
}

/* Asks the policy again and again: every image is new. */
static _Atomic bool stop;
static void *miss_for_ever(void *unused) {
    (void)unused;
    char *copy = malloc(image_size);
    for (unsigned i = 0; copy && !stop; i++) {
        memcpy(copy, image, image_size);
        memcpy(copy + 9, &i, sizeof i); /* e_ident's padding: another image, as valid as before */
        mgpu.ModuleUnload(mgpu.ModuleLoad(copy, 0));
    }
    free(copy);
    return NULL;
}

/* Forks and says whether the child's own launch went well; a child that hangs is a failure. */
static bool in_child(void) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const bool good = launch_once();
        exit(good ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "child ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool fork_while_busy(void) {
    pthread_t busy;
    bool good = launch_once();
    pthread_create(&busy, NULL, miss_for_ever, NULL);
    for (int i = 0; i < 20 && good; i++)
        good = in_child();
    stop = true;
    pthread_join(busy, NULL);
    return good;
}

static void launch_late(void) {
    puts(launch_once() ? "late ok" : "late failed");
}

static bool keeps_host_state(void) {
    struct sigaction before, after;
    sigaction(SIGINT, NULL, &before);
    char *locale = strdup(setlocale(LC_ALL, NULL));
    const bool good = launch_once();
    sigaction(SIGINT, NULL, &after);
    return good && locale && strcmp(locale, setlocale(LC_ALL, NULL)) == 0 &&
           before.sa_handler == after.sa_handler;
}

static bool run(const char *mode) {
    if (strcmp(mode, "plain") == 0)
        return launch_once() && launch_once();
    if (strcmp(mode, "nothing") == 0)
        return true;
    if (strcmp(mode, "thread") == 0) /* the first thread ends before the next call */
        return in_threads(1) && launch_once() && in_threads(1);
    if (strcmp(mode, "threads") == 0)
        return in_threads(8) && launch_once();
    if (strcmp(mode, "fork-before") == 0)
        return in_child() && launch_once();
    if (strcmp(mode, "fork-after") == 0)
        return launch_once() && in_child() && launch_once();
    if (strcmp(mode, "fork-busy") == 0)
        return fork_while_busy();
    if (strcmp(mode, "dlclose") == 0)
        return launch_once() && dlclose(library) == 0;
    if (strcmp(mode, "late") == 0) /* an exit handler from before the library's first call */
        return atexit(launch_late) == 0 && launch_once();
    if (strcmp(mode, "state") == 0)
        return keeps_host_state();
    return false;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 3;
    const char *mode = argv[4];
    const bool local = strncmp(mode, "local-", 6) == 0;
    kernel = argv[3];
    read_image(argv[2]);
    open_library(argv[1], RTLD_NOW | (local ? RTLD_LOCAL : RTLD_GLOBAL));
    const bool good = run(local ? mode + 6 : mode);
    puts(good ? "ok" : "failed");
    return good ? 0 : 1;
}
