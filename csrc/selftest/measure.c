/* The programs that `mgpu-rt selftest` runs in separate processes:
 *
 *     measure programs LIBRARY NAME...     runs each lowered program once: "# NAME", its answers
 *                                          and says "# end" on stderr when main returns
 *     measure rounds LIBRARY NAME COUNT    runs it in so many rounds: nanoseconds a call
 *
 * MGPU_RT_HIP names HIP. LIBRARY is the bundle's programs.so. The programs in LIBRARY call the
 * runtime library to which `measure` is linked, and print through functions of this file. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Noreturn void fail(const char *what, const char *which) {
    fprintf(stderr, "%s: %s\n", what, which);
    exit(97);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

typedef void (*function)(void);

/* Returns the address of a function of HIP, such as "hipMalloc". Ends the program if the function
 * is missing. */
static function hip_find(const char *name) {
    static void *library;
    const char *path = getenv("MGPU_RT_HIP");
    if (!library)
        library = dlopen(path ? path : "libamdhip64.so", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        fail("HIP cannot be opened", dlerror());
    function found;
    *(void **)&found = dlsym(library, name);
    if (!found)
        fail("this HIP lacks", name);
    return found;
}

/* ---- what the programs print with ---- */

void printI64(int64_t value);
void printF32(float value);
void printNewline(void);
void _mlir_ciface_printMemrefF32(void *unranked);

static FILE *out;
static int is_quiet;

void printI64(int64_t value) {
    if (!is_quiet)
        fprintf(out, "%" PRId64, value);
}

void printF32(float value) {
    if (!is_quiet)
        fprintf(out, "%g", (double)value);
}

void printNewline(void) {
    if (!is_quiet)
        fputc('\n', out);
}

/* A memref of one dimension: { rank, { allocated, aligned, offset, size, stride } }. */
void _mlir_ciface_printMemrefF32(void *unranked) {
    const struct {
        float *allocated, *aligned;
        int64_t offset, size, stride;
    } *memref = ((void **)unranked)[1];
    for (int64_t i = 0; i < memref->size; ++i) {
        printF32(memref->aligned[memref->offset + i * memref->stride]);
        if (!is_quiet)
            fputc(i + 1 < memref->size ? ' ' : '\n', out);
    }
}

/* ---- lowered programs ---- */

static void *open_programs(const char *library) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        fail("the programs cannot be opened", dlerror());
    return opened;
}

static function lowered(void *opened, const char *name) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_main", name);
    function found;
    *(void **)&found = dlsym(opened, symbol);
    if (!found)
        fail("no such program", name);
    return found;
}

static void run_each(void *opened, int count, char **names) {
    for (int i = 0; i < count; ++i) {
        printf("# %s\n", names[i]);
        fflush(stdout);
        lowered(opened, names[i])();
    }
}

/* Runs the program `calls` times; returns the nanoseconds until the device is idle. */
static uint64_t time_calls(void (*program)(void), uint64_t calls) {
    int (*wait_for_all)(void) = (int (*)(void))hip_find("hipDeviceSynchronize");
    const uint64_t begin = now_ns();
    for (uint64_t i = 0; i < calls; ++i)
        program();
    wait_for_all();
    return now_ns() - begin;
}

/* Prints the nanoseconds per call of each round. A round takes about 50 ms; the first calls, which
 * start HIP, do not count. */
static void print_rounds(void (*program)(void), long rounds) {
    enum { ROUND_NS = 50000000, WARM = 5 };
    uint64_t fastest = UINT64_MAX;
    time_calls(program, 1);
    for (int i = 0; i < WARM; ++i) {
        const uint64_t taken = time_calls(program, 1);
        fastest = taken < fastest ? taken : fastest;
    }
    const uint64_t calls = 1 + ROUND_NS / (fastest + 1);
    for (long i = 0; i < rounds; ++i)
        printf("%.3f\n", (double)time_calls(program, calls) / (double)calls);
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    out = stdout;
    if (strcmp(mode, "programs") == 0 && count > 3) {
        run_each(open_programs(words[2]), count - 3, words + 3);
        fputs("# end\n", stderr);
    } else if (strcmp(mode, "rounds") == 0 && count == 5) {
        is_quiet = 1;
        print_rounds(lowered(open_programs(words[2]), words[3]), strtol(words[4], NULL, 10));
    } else {
        fail("measure", "no such words");
    }
    return 0;
}
