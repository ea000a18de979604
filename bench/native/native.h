/* Helpers for all measuring programs: the clock, the processor, the loader, files, and an exit with
 * a message. */
#ifndef BENCH_NATIVE_H
#define BENCH_NATIVE_H

#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void fail(const char *what, const char *which) {
    fprintf(stderr, "%s: %s\n", what, which);
    exit(1);
}

/* Keeps this thread on one processor. */
static inline void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

static inline void *open_library(const char *path) {
    /* Needs RTLD_LAZY, because the plain runtime calls a function that AMD's HIP 5 lacks. */
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        fail("cannot open", dlerror());
    return library;
}

static inline void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address)
        fail("no such function", name);
    return address;
}

/* Returns a file's bytes and a terminating 0. */
static inline char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot read", path);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(size + 1, 1);
    if (!bytes || fread(bytes, 1, size, file) != size)
        fail("cannot read", path);
    fclose(file);
    return bytes;
}

#endif
