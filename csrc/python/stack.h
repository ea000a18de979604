/* Tells whether the calling thread has enough stack for Python. */
#ifndef MGPU_RT_PYTHON_STACK_H
#define MGPU_RT_PYTHON_STACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { STACK_ROOM = 256 << 10 }; /* bytes of stack that Python and NumPy may need */

/* Finds the part of the calling thread's stack from which a function may call Python. Returns the
 * lowest address of this part, or 0 if the stack is unknown. */
static inline uintptr_t stack_floor(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
    pthread_attr_destroy(&attributes);
    const uintptr_t here = (uintptr_t)&attributes;
    const bool inside = here >= (uintptr_t)lowest && here < (uintptr_t)lowest + size;
    return known && inside ? (uintptr_t)lowest + STACK_ROOM : 0;
}

static inline bool stack_has_room(void) {
    static __thread uintptr_t floor __attribute__((tls_model("initial-exec"))) = UINTPTR_MAX;
    static bool said;
    char here;
    if (floor == UINTPTR_MAX)
        floor = stack_floor();
    if ((uintptr_t)&here >= floor)
        return true;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        fputs("mgpu_rt: a thread has less than 256 KB of stack, too little for Python: calls of "
              "this thread bypass the runtime\n",
              stderr);
    return false;
}

#endif
