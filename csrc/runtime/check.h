/* CHECK asserts a rule that a table of shared/types.h states. The code that must follow the rule
 * contains the assertion. `make CFLAGS=-DMGPU_RT_CHECK` builds a library that ends the process if
 * an assertion is false. `make sanitize` and tests/runtime/shared/test_checks.py run such builds.
 * In every other build CHECK expands to nothing. */
#ifndef MGPU_RT_CHECK_H
#define MGPU_RT_CHECK_H

#ifdef MGPU_RT_CHECK

#include <stdio.h>
#include <stdlib.h>

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #__VA_ARGS__);       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#else

#define CHECK(...) (void)0

#endif

/* Declares a function for assertions only. */
#define CHECKS static inline __attribute__((unused))

#endif
