/* Steps of modules, their functions and launches. */
#include "steps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* The place of an image when the program loads the image. IMAGE_FIXED is the image's own address,
 * which never changes. IMAGE_FIRST and IMAGE_SECOND are buffers that all images share, like the
 * buffers of a JIT. IMAGE_MAPPED means newly mapped pages. The other places are constants in
 * libraries (tests/proofs/programs/bundle.py). IMAGE_CONSTANT's library stays open.
 * IMAGE_CLOSABLE's library may be closed. The loader has relocated IMAGE_RELOCATED's library. */
enum {
    IMAGE_FIXED,
    IMAGE_FIRST,
    IMAGE_SECOND,
    IMAGE_MAPPED,
    IMAGE_CONSTANT,
    IMAGE_CLOSABLE,
    IMAGE_RELOCATED
};
enum { ROOM = 1 << 16 };

static void *closable;

static void *image_in(void *library, long long number) {
    char name[32];
    snprintf(name, sizeof name, "image%lld", number);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL)
        give_up("no library holds the constant %s", name);
    return found;
}

/* open: opens the library that imports mgpuEventElapsedTime */
static void play_open(const struct step *step) {
    (void)step;
    (void)library_open("importer");
}

/* library NUMBER: opens a library in place of the open one */
static void play_library(const struct step *step) {
    if (closable != NULL)
        dlclose(closable);
    closable = library_open(ARGUMENT(0) == 0 ? "closable0" : "closable1");
}

static void *image_at(long long place, long long number, const void *content, size_t bytes) {
    static char rooms[2][ROOM] __attribute__((aligned(4096))) = {{1}}; /* not 0, so not in .bss */
    if (place == IMAGE_FIXED)
        return (void *)(uintptr_t)content;
    if (place == IMAGE_CONSTANT)
        return image_in(library_open("constants"), number);
    if (place == IMAGE_CLOSABLE)
        return image_in(closable, number);
    void *at = rooms[place == IMAGE_SECOND];
    if (place == IMAGE_RELOCATED) {
        at = image_in(library_open("relocated"), 0);
        mprotect(at, ROOM / 2, PROT_READ | PROT_WRITE);
    }
    if (place == IMAGE_MAPPED)
        at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, content, bytes);
    return at;
}

static pthread_mutex_t rooms_mutex = PTHREAD_MUTEX_INITIALIZER;

/* load WHO MODULE IMAGE PLACE */
static void play_load(const struct step *step) {
    size_t bytes;
    const void *content = image_content((int)ARGUMENT(2), &bytes);
    void *module = NULL;
    pthread_mutex_lock(&rooms_mutex);
    void *at = image_at(ARGUMENT(3), ARGUMENT(2), content, bytes);
    if (ARGUMENT(0) == 0)
        module = mgpuModuleLoad(at, bytes);
    else
        check(step, HIP(hipModuleLoadData, void **, const void *)(&module, at));
    if (ARGUMENT(3) == IMAGE_MAPPED)
        munmap(at, ROOM);
    pthread_mutex_unlock(&rooms_mutex);
    MODULE(1) = module;
    say_handle(step, module);
}

/* unload WHO MODULE */
static void play_unload(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuModuleUnload(MODULE(1));
    else
        check(step, HIP(hipModuleUnload, void *)(MODULE(1)));
    MODULE(1) = NULL;
}

/* global BUFFER MODULE: finds the address of the module's constant through HIP */
static void play_global(const struct step *step) {
    size_t bytes = 0;
    check(step, HIP(hipModuleGetGlobal, void **, size_t *, void *,
                    const char *)(&BUFFER(0), &bytes, MODULE(1), "value"));
}

enum { KERNEL_MIX, KERNEL_SLOW, KERNEL_COPY, KERNEL_BUMP, KERNEL_WHERE };
static const char *const kernel_names[] = {"mix", "slow", "copy", "bump", "where", "missing"};

/* function WHO FUNCTION MODULE KERNEL PLACE: if PLACE is 0, the name is a constant; otherwise the
 * name is in the thread's buffer */
static void play_function(const struct step *step) {
    static _Thread_local char room[16];
    const char *name = kernel_names[ARGUMENT(3)];
    if (ARGUMENT(4) != 0)
        name = strcpy(room, name);
    void *function = NULL;
    if (ARGUMENT(0) == 0)
        function = mgpuModuleGetFunction(MODULE(2), name);
    else
        check(step,
              HIP(hipModuleGetFunction, void **, void *, const char *)(&function, MODULE(2), name));
    FUNCTION(1) = function;
    say_handle(step, function);
}

struct arguments {
    int64_t words[12]; /* arguments: two memrefs (allocated, aligned, offset, size, stride) and one
                        * or two numbers */
    void *params[12];
};

static void set_memref(struct arguments *arguments, unsigned at, void *buffer, int64_t count) {
    const int64_t words[5] = {(int64_t)(uintptr_t)buffer, (int64_t)(uintptr_t)buffer, 0, count, 1};
    memcpy(&arguments->words[at], words, sizeof words);
}

static void launch(const struct step *step, long long who, void *function, unsigned grid,
                   unsigned block, void *stream, void **params) {
    if (who == 0)
        mgpuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, params, NULL, 0);
    else
        check(step, HIP(hipModuleLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, unsigned, void *, void **,
                        void **)(function, grid, 1, 1, block, 1, 1, 0, stream, params, NULL));
}

/* launch WHO FUNCTION KERNEL STREAM BUFFER COUNT (K or FROM) */
static void play_launch(const struct step *step) {
    struct arguments arguments = {.words = {0}};
    for (unsigned i = 0; i < 12; ++i)
        arguments.params[i] = &arguments.words[i];
    const int64_t count = ARGUMENT(5);
    set_memref(&arguments, 0, BUFFER(4), count);
    unsigned grid = (unsigned)((count + 63) / 64), block = 64;
    switch (ARGUMENT(2)) {
    case KERNEL_MIX:
    case KERNEL_SLOW:
        arguments.words[5] = count;
        arguments.words[6] = ARGUMENT(6);
        break;
    case KERNEL_COPY:
        set_memref(&arguments, 5, BUFFER(6), count);
        arguments.words[10] = count;
        break;
    default:
        grid = block = 1;
    }
    launch(step, ARGUMENT(0), FUNCTION(1), grid, block, STREAM(3), arguments.params);
    memset(&arguments, 0xEE, sizeof arguments); /* the caller may overwrite the arguments */
}

void launch_mix(const struct step *step, void *function, void *stream, void *block, int64_t count,
                int64_t k) {
    struct arguments arguments = {.words = {0}};
    for (unsigned i = 0; i < 12; ++i)
        arguments.params[i] = &arguments.words[i];
    set_memref(&arguments, 0, block, count);
    arguments.words[5] = count;
    arguments.words[6] = k;
    launch(step, 0, function, (unsigned)((count + 63) / 64), 64, stream, arguments.params);
}

/* ---- the steps ---- */

const struct step_kind module_steps[] = {
    {"open", play_open},     {"library", play_library},
    {"load", play_load},     {"unload", play_unload},
    {"global", play_global}, {"function", play_function},
    {"launch", play_launch}, {NULL, NULL},
};
