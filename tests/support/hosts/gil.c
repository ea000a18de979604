/* The program has a mutex, which one of its threads holds while it loads modules. Python calls
 * gil_wait without releasing the GIL (ctypes.PyDLL). */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*load_function)(void *, size_t);
typedef void (*unload_function)(void *);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static load_function load;
static unload_function unload;
static char *image;
static size_t size;
static int rounds, answered;
static _Atomic int holding, waiting;

static void *work(void *unused) {
    (void)unused;
    char *copy = malloc(size);
    pthread_mutex_lock(&mutex);
    holding = 1;
    while (!waiting)
        usleep(1000);
    for (uint32_t i = 0; copy && i < (uint32_t)rounds; i++) {
        memcpy(copy, image, size);
        memcpy(copy + 9, &i, sizeof i); /* a number in e_ident's padding makes a different image */
        void *module = load(copy, size);
        answered += module != NULL;
        unload(module);
    }
    pthread_mutex_unlock(&mutex);
    free(copy);
    return NULL;
}

/* Returns once the thread holds the mutex; the thread starts to load when gil_wait is called. */
void gil_start(void *load_module, void *unload_module, char *bytes, size_t count, int loads) {
    pthread_t thread;
    *(void **)&load = load_module;
    *(void **)&unload = unload_module;
    image = bytes;
    size = count;
    rounds = loads;
    holding = waiting = 0;
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    while (!holding)
        usleep(1000);
}

/* Returns how many loads succeeded. */
int gil_wait(void) {
    waiting = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return answered;
}
