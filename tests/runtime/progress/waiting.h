/* The parts of progress.c and questions.c that time a call while a kernel waits for the host. */
#ifndef WAITING_H
#define WAITING_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HIP's functions have many types; a call through a pointer without a prototype suits integers and
 * pointers. */
typedef void *(*function)();

static void *library; /* HIP */
static char image[1 << 20];
static volatile int *flag; /* the kernel `until` ends when this is not 0 */

static void *open_library(const char *path, int flags) {
    void *opened = dlopen(path, flags);
    if (!opened) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return opened;
}

static void read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fread(image, 1, sizeof image, file) == 0)
        exit(2);
    fclose(file);
}

/* Gives the kernels their bodies on the stub of HIP. */
static void until_body(void **params) {
    while (!**(volatile int **)params[0])
        usleep(1000);
}
static void one_body(void **params) {
    **(int **)params[0] = 41;
}
static void give_bodies(void) {
    const size_t sizes[] = {8, 8, 8, 8, 8};
    function give = (function)(uintptr_t)dlsym(library, "hipstub_set_kernel");
    if (give) {
        (void)give("until", until_body, sizes, 5);
        (void)give("one", one_body, sizes, 5);
    }
}

/* ---- one thread makes all calls, so that its caches serve them ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void (*wanted)(void);

static void *caller(void *none) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!wanted)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        wanted();
        pthread_mutex_lock(&lock);
        wanted = NULL;
        pthread_cond_broadcast(&changed);
    }
    return none;
}

static void start_caller(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, caller, NULL) != 0)
        exit(2);
}

/* Returns whether a call has returned in time, in milliseconds. If not, lets the kernel end, so
 * that the call returns. */
static bool returns(void (*call)(void), long patience) {
    struct timespec limit;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += patience % 1000 * 1000000;
    limit.tv_sec += patience / 1000 + limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    wanted = call;
    pthread_cond_broadcast(&changed);
    while (wanted && error == 0)
        error = pthread_cond_timedwait(&changed, &lock, &limit);
    const bool result = !wanted;
    if (!result)
        *flag = 1;
    while (wanted)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- a call and its result ---- */

static long patience;
static char **known; /* the calls that may wait, as "situation:call" */

/* Prints what a call does; `elsewhere` is later work on another stream, or NULL. A known call may
 * take at most `least` milliseconds. */
static void time_call(const char *name, void (*call)(void), void (*elsewhere)(void), long least) {
    long limit = patience;
    for (char **each = known; *each; each++)
        if (strcmp(*each, name) == 0 && limit > least)
            limit = least;
    const bool result = returns(call, limit);
    const bool delays = result && elsewhere && !returns(elsewhere, limit);
    printf("%s %s\n", name, !result ? "waits" : delays ? "delays" : "returns");
    fflush(stdout);
}

#endif
