/* Plays the situations, and prints the state after each situation.
 *
 *     program RUNTIME FOLDER PENDING FIRST
 *
 * RUNTIME is a libmlir_rocm_runtime.so, and FOLDER holds the images. PENDING names the error that
 * the program leaves before each call: none, device or memory. FIRST is the first situation to
 * play. If a situation ends the process, this end is the situation's result. */
#include "situation.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 256 };

static struct {
    const char *name;
    void (*run)(void);
} all[MOST];
static int count;
static const char *current, *folder, *pending;
static void *hip;

#define MGPU_FN(result, name, params, args, first, last, ...) result(*name) params;
#include "../../../csrc/abi.def"

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "last_error: %s: %s\n", what, dlerror());
    exit(2);
}

void situation_add(const char *name, void (*run)(void)) {
    all[count].name = name;
    all[count++].run = run;
}

void (*situation_hip(const char *name))(void) {
    void (*found)(void);
    *(void **)&found = dlsym(hip, name);
    if (found == NULL)
        give_up(name);
    return found;
}

void situation_before(void) {
    void *address;
    HIP(hipGetLastError, void)();
    if (strcmp(pending, "device") == 0)
        HIP(hipSetDevice, int)(99);
    else if (strcmp(pending, "memory") == 0)
        HIP(hipMalloc, void **, size_t)(&address, (size_t)1 << 50);
    fprintf(stderr, "\n[%s\n", current);
}

void situation_after(void) {
    const int peeked = HIP(hipPeekAtLastError, void)(), got = HIP(hipGetLastError, void)();
    fputs("]\n", stderr);
    printf("%s %d %d\n", current, peeked, got);
    fflush(stdout);
}

void *situation_file(const char *name, bool at_end) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        give_up(path);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file), page = 4096;
    const size_t room = (size + page - 1) / page * page + page;
    char *area =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = at_end ? area + room - size : area;
    rewind(file);
    if (area == MAP_FAILED || fread(at, 1, size, file) != size ||
        mprotect(area + room, page, PROT_NONE) != 0)
        give_up(path);
    fclose(file);
    return at;
}

/* The program does not call a function that a runtime lacks: see main. */
static void load(const char *path) {
    void *runtime = dlopen(path, RTLD_LAZY); /* AMD's HIP 5.2.3 lacks a function that stock calls */
    if (runtime == NULL)
        give_up(path);
#define MGPU_FN(result, name, params, args, first, last, ...)                                      \
    *(void **)&name = dlsym(runtime, #name);
#include "../../../csrc/abi.def"
}

int main(int argc, char **argv) {
    const struct rlimit no_core = {0, 0};
    int version = 0;
    if (argc != 5)
        return 2;
    setrlimit(RLIMIT_CORE, &no_core);
    folder = argv[2];
    pending = argv[3];
    hip = dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW | RTLD_GLOBAL);
    if (hip == NULL)
        give_up("HIP");
    load(argv[1]);
    HIP(hipRuntimeGetVersion, int *)(&version);
    printf("hip %d\n", version);
    for (int i = atoi(argv[4]); i < count; ++i) {
        current = all[i].name;
        printf("%d %s\n", i, current);
        fflush(stdout);
        all[i].run();
        HIP(hipDeviceSynchronize, void)();
        HIP(hipGetLastError, void)();
    }
    puts("done");
    fflush(stdout);
    _exit(0); /* skips exit handlers and destructors, which this program does not test */
}
