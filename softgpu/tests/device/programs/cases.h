/* Runs test cases in one process, because HIP's start takes longer than a case. The command is
 * `program CASE[,CASE...] [IMAGE]`, where IMAGE is the code object of kernels.mlir. Stderr names
 * the case that failed: the last one there. */
#ifndef SOFTGPU_TEST_CASES_H
#define SOFTGPU_TEST_CASES_H

#include "hip.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

static char image[1 << 20];
static hipModule_t module;

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline double now(void) {
    return seconds(CLOCK_MONOTONIC);
}

static inline double cpu_time(void) {
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

/* Returns a kernel by its name, from a module that the first call loads. */
static inline hipFunction_t kernel(const char *name) {
    if (!module)
        OK(hipModuleLoadData(&module, image));
    hipFunction_t function;
    OK(hipModuleGetFunction(&function, module, name));
    return function;
}

static inline hipStream_t new_stream(void) {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    return stream;
}

/* Launches one workgroup of 64 work-items. */
static inline void launch(hipFunction_t function, hipStream_t stream, void **arguments) {
    OK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static inline bool run_case(const char *name, const struct test_case *cases) {
    for (; cases->name; cases++)
        if (strcmp(cases->name, name) == 0) {
            fprintf(stderr, "case %s\n", name);
            cases->run();
            return true;
        }
    fprintf(stderr, "no case is called %s\n", name);
    return false;
}

static inline int run_cases(int count, char **arguments, const struct test_case *cases) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    FILE *file = count > 2 ? fopen(arguments[2], "rb") : NULL;
    if (count < 2 || (file && fread(image, 1, sizeof image, file) == 0))
        return 2;
    hip_open();
    char *rest = arguments[1];
    for (char *name = strtok_r(rest, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!run_case(name, cases))
            return 2;
    return 0;
}

#endif
