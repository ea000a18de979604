/* Records what Python knows of modules and functions, so that C calls Python only with new facts.
 *
 * A table of fixed size holds one fact for each hash of a handle: what was written last. If
 * another handle has replaced a fact, C calls Python once more, and Python writes the fact
 * again. No thread waits for the lock, because in a forked child it may stay taken: a thread that
 * does not get the lock calls Python. */
#ifndef MGPU_RT_PYTHON_KNOWN_H
#define MGPU_RT_PYTHON_KNOWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KNOWN_BITS = 13, KNOWN = 1 << KNOWN_BITS };

/* The image of a module, or the image and the name of a function. Python never frees the texts. */
struct fact {
    uintptr_t handle, module;
    const char *content, *name;
    size_t size; /* of the image; 0 if unknown: no load of such an image is known */
    int knower;
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fact facts[KNOWN];
static int knower; /* the runtime that answers: another number for each that is installed */

static struct fact *fact_place(uintptr_t handle) {
    return &facts[(uint64_t)handle * 0x9e3779b97f4a7c15u >> (64 - KNOWN_BITS)];
}

/* Copies what is known of a handle; returns false if nothing is. */
static bool find_fact(uintptr_t handle, struct fact *out) {
    if (pthread_mutex_trylock(&known_lock) != 0)
        return false;
    *out = *fact_place(handle);
    pthread_mutex_unlock(&known_lock);
    return out->handle == handle && out->size &&
           out->knower == __atomic_load_n(&knower, __ATOMIC_RELAXED);
}

/* Compares the first bytes first: they say that there are as many as there were. */
static int lies_at(uintptr_t address, const char *content, size_t size) {
    const size_t head = size < 64 ? size : 64;
    return memcmp((const void *)address, content, head) == 0 &&
           memcmp((const void *)address, content, size) == 0;
}

static bool module_is_known(uintptr_t module, uintptr_t image) {
    struct fact its;
    return find_fact(module, &its) && lies_at(image, its.content, its.size);
}

static bool function_is_known(uintptr_t function, uintptr_t module, const char *name) {
    struct fact its, known;
    return name && find_fact(module, &its) && find_fact(function, &known) &&
           known.module == module && known.content == its.content && strcmp(known.name, name) == 0;
}

/* Records that a runtime knows a module or a function; Python calls this function. */
static void know(int who, uintptr_t handle, uintptr_t module, const char *content, size_t size,
                 const char *name) {
    if (pthread_mutex_trylock(&known_lock) != 0)
        return;
    *fact_place(handle) = (struct fact){handle, module, content, name, size, who};
    pthread_mutex_unlock(&known_lock);
}

/* Returns the number of a runtime that answers from now on, and knows nothing. */
static int new_knower(void) {
    return __atomic_add_fetch(&knower, 1, __ATOMIC_RELAXED);
}

#endif
