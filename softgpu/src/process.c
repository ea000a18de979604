/* Handles fork, messages and the clock for the whole process. */
#include "thunk.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool opened, forked;

static void on_fork_in_child(void) {
    forked = opened;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, on_fork_in_child);
}

void softgpu_opened(void) {
    opened = true;
}

bool softgpu_forked(void) {
    return forked;
}

void softgpu_say(const char *format, ...) {
    char text[2048] = "softgpu: ";
    size_t used = sizeof "softgpu: " - 1;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text + used, sizeof text - used - 1, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        return;
    size_t room = sizeof text - used - 2;
    used += (size_t)wanted < room ? (size_t)wanted : room;
    text[used++] = '\n';
    if (write(STDERR_FILENO, text, used) < 0)
        return; /* stderr is closed, so the message is lost */
}

uint64_t softgpu_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}
