/* Measures what the library costs a process until the first launch is done.
 *
 *     startup spawn PAIRS PROGRAM LIBRARY   JSON: ns of a PROGRAM's life, "without" and "with" the
 *                                           LIBRARY preloaded, one number a pair
 *     startup open LIBRARY BEGIN            JSON: ns of the dlopen
 *     startup hip LIBRARY BEGIN             JSON: ns of each step to the end of the first launch,
 *     startup runtime LIBRARY BEGIN         with HIP called by hand, or through a runtime; ns since
 *                                           BEGIN (CLOCK_MONOTONIC), KiB of resident memory
 *
 * The first launch makes LLVM 19's calls in LLVM 19's order: module, function, stream, launch,
 * wait. */
#include "forum.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* ---- a program that never calls the library ---- */

static uint64_t life(char *program) {
    char *arguments[] = {program, NULL};
    pid_t child;
    int status;
    const uint64_t begin = now_ns();
    if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0)
        fail("cannot start", program);
    waitpid(child, &status, 0);
    const uint64_t end = now_ns();
    if (status != 0)
        fail("failed", program);
    return end - begin;
}

static void print_list(const char *name, const uint64_t *times, long count) {
    printf("\"%s\": [", name);
    for (long i = 0; i < count; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)times[i]);
    printf("]");
}

static void spawn(long pairs, char *program, const char *library) {
    uint64_t *without = calloc((size_t)pairs, sizeof *without);
    uint64_t *with = calloc((size_t)pairs, sizeof *with);
    if (!without || !with)
        fail("no memory", "for the times");
    for (long i = 0; i < pairs; i++) {
        without[i] = life(program);
        setenv("LD_PRELOAD", library, 1);
        with[i] = life(program);
        unsetenv("LD_PRELOAD");
    }
    printf("{");
    print_list("without", without, pairs);
    printf(", ");
    print_list("with", with, pairs);
    printf("}\n");
    free(without);
    free(with);
}

/* ---- the first launch ---- */

enum step { OPEN, MODULE, FUNCTION, STREAM, LAUNCH, WAIT, STEPS };
static const char *const step_names[STEPS] = {"open",   "module", "function",
                                              "stream", "launch", "wait"};
static uint64_t ends[STEPS];

static void done(enum step step) {
    ends[step] = now_ns();
}

/* Returns the resident memory of this process, in KiB. */
static long resident(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[128];
    long size = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &size) == 1)
            break;
    if (status)
        fclose(status);
    return size;
}

static void print_steps(uint64_t begin, int steps, const char *process_began) {
    printf("{\"since_start\": %llu, \"resident_kib\": %ld, \"steps\": ",
           (unsigned long long)(ends[steps - 1] - strtoull(process_began, NULL, 10)), resident());
    for (int i = 0; i < steps; i++) {
        printf("%s\"%s\": %llu", i ? ", " : "{", step_names[i],
               (unsigned long long)(ends[i] - (i ? ends[i - 1] : begin)));
    }
    printf("}}\n");
}

static void launch_by_hand(const char *path) {
    struct hip hip;
    void *params[1];
    resolve_hip(&hip, open_library(path));
    done(OPEN);
    int error = hip.ModuleLoadData(&hip.module, forum_image);
    done(MODULE);
    error |= hip.ModuleGetFunction(&hip.function, hip.module, KERNEL);
    done(FUNCTION);
    error |= hip.StreamCreate(&hip.stream);
    done(STREAM);
    error |= hip.ModuleLaunchKernel(hip.function, 1, 1, 1, 1, 1, 1, 0, hip.stream, params, NULL);
    done(LAUNCH);
    error |= hip.StreamSynchronize(hip.stream);
    done(WAIT);
    if (error != 0)
        fail("HIP cannot launch", path);
}

static void launch_through(const char *path) {
    struct runtime runtime;
    void *params[1];
    resolve_runtime(&runtime, open_library(path));
    done(OPEN);
    void *module = runtime.ModuleLoad(forum_image, (size_t)(forum_image_end - forum_image));
    done(MODULE);
    void *function = runtime.ModuleGetFunction(module, KERNEL);
    done(FUNCTION);
    void *stream = runtime.StreamCreate();
    done(STREAM);
    runtime.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 0);
    done(LAUNCH);
    runtime.StreamSynchronize(stream);
    done(WAIT);
    if (!module || !function || !stream)
        fail("the runtime cannot launch", path);
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "spawn") == 0) {
        spawn(atol(argv[2]), argv[3], argv[4]);
        return 0;
    }
    if (argc != 4)
        fail("usage", "see the head of startup.c");
    const uint64_t begin = now_ns();
    if (strcmp(argv[1], "open") == 0) {
        (void)open_library(argv[2]);
        done(OPEN);
        print_steps(begin, 1, argv[3]);
        return 0;
    }
    if (strcmp(argv[1], "hip") == 0)
        launch_by_hand(argv[2]);
    else
        launch_through(argv[2]);
    print_steps(begin, STEPS, argv[3]);
    return 0;
}
