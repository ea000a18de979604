/* Steps of modules, their functions and launches. */
#include "steps.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* The place of an image when the program loads the image. IMAGE_FIXED is the image's own address,
 * which never changes. IMAGE_FIRST and IMAGE_SECOND are buffers that all images share, like the
 * buffers of a JIT. IMAGE_MAPPED means newly mapped pages. */
enum { IMAGE_FIXED, IMAGE_FIRST, IMAGE_SECOND, IMAGE_MAPPED };
enum { ROOM = 1 << 16 };

static void *image_at(long long place, const void *content, size_t bytes) {
    static char rooms[2][ROOM] __attribute__((aligned(4096))) = {{1}}; /* not 0, so not in .bss */
    if (place == IMAGE_FIXED)
        return (void *)(uintptr_t)content;
    void *at = rooms[place == IMAGE_SECOND];
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
    void *at = image_at(ARGUMENT(3), content, bytes);
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

enum { KERNEL_MIX, KERNEL_SLOW, KERNEL_COPY, KERNEL_BUMP, KERNEL_WHERE };
static const char *const kernel_names[] = {"mix", "slow", "copy", "bump", "where"};

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

/* ---- the steps ---- */

const struct step_kind module_steps[] = {
    {"load", play_load},
    {"unload", play_unload},
    {"function", play_function},
    {"launch", play_launch},
    {NULL, NULL},
};
