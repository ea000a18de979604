/* Records what Python knows of modules and functions, so that C calls Python only with new facts.
 *
 * Two tables of fixed size hold one entry for each hash of a handle: what was written last. If
 * another handle has replaced an entry, C calls Python once more, and Python writes the entry
 * again. No thread waits for the lock, because in a forked child it may stay taken: a thread that
 * does not get the lock calls Python. */
#ifndef MGPU_RT_PYTHON_KNOWN_H
#define MGPU_RT_PYTHON_KNOWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_BITS = 12, KNOWN = 1 << KNOWN_BITS };

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static int knower; /* the runtime that answers: another number for each that is installed */
static struct known_module {
    uintptr_t module;
    const char *content; /* Python's copy of the image, which Python never frees */
    size_t size;         /* 0 if unknown: no load of such an image is known */
    int knower;
} known_modules[KNOWN];
static struct known_function {
    uintptr_t function, module;
    const char *content; /* the module's, when Python was told of the function */
    char *name;
    int knower;
} known_functions[KNOWN];

static unsigned known_index(uintptr_t handle) {
    return (unsigned)((uint64_t)handle * 0x9e3779b97f4a7c15u >> (64 - KNOWN_BITS));
}

/* Compares the first bytes first: they say that there are as many as there were. */
static int lies_at(uintptr_t address, const char *content, size_t size) {
    const size_t head = size < 64 ? size : 64;
    return memcmp((const void *)address, content, head) == 0 &&
           memcmp((const void *)address, content, size) == 0;
}

static bool is_known_module(const struct known_module *known, uintptr_t module) {
    return known->module == module && known->size &&
           known->knower == __atomic_load_n(&knower, __ATOMIC_RELAXED);
}

static bool module_is_known(uintptr_t module, uintptr_t image) {
    if (pthread_mutex_trylock(&known_lock) != 0)
        return false;
    const struct known_module known = known_modules[known_index(module)];
    const bool is_known = is_known_module(&known, module);
    pthread_mutex_unlock(&known_lock);
    return is_known && lies_at(image, known.content, known.size);
}

static bool function_is_known(uintptr_t function, uintptr_t module, const char *name) {
    if (!name || pthread_mutex_trylock(&known_lock) != 0)
        return false;
    const struct known_function *const known = &known_functions[known_index(function)];
    const struct known_module *const its = &known_modules[known_index(module)];
    const bool is_known = known->function == function && known->module == module &&
                          is_known_module(its, module) && its->knower == known->knower &&
                          its->content == known->content && strcmp(known->name, name) == 0;
    pthread_mutex_unlock(&known_lock);
    return is_known;
}

/* Records that a runtime knows a module; Python calls this function. `content` has to stay for as
 * long as the process runs. */
static void know_module(int who, uintptr_t module, const char *content, size_t size) {
    if (pthread_mutex_trylock(&known_lock) != 0)
        return;
    known_modules[known_index(module)] = (struct known_module){module, content, size, who};
    pthread_mutex_unlock(&known_lock);
}

static void know_function(int who, uintptr_t function, uintptr_t module, const char *name) {
    char *copy = strdup(name);
    if (copy && pthread_mutex_trylock(&known_lock) == 0) {
        struct known_function *const known = &known_functions[known_index(function)];
        const struct known_module *const its = &known_modules[known_index(module)];
        char *const before = known->name;
        *known = (struct known_function){function, module, its->content, copy, who};
        copy = before;
        pthread_mutex_unlock(&known_lock);
    }
    free(copy);
}

/* Returns the number of a runtime that answers from now on, and knows nothing. */
static int new_knower(void) {
    return __atomic_add_fetch(&knower, 1, __ATOMIC_RELAXED);
}

#endif
