/* Runs the forum's loop with any runtime, as a lowered program does: each function has one call
 * site, and the image is read-only data.
 *
 * IMAGE_FILE is the path of the code object, and KERNEL is the name of a kernel in this file. */
#ifndef BENCH_FORUM_H
#define BENCH_FORUM_H

#include "runtime.h"

#include <string.h>

/* LLVM's constants are 8 bytes past a multiple of 16, because their alignment is 8. */
__asm__(".section .rodata\n.balign 64\n.skip 8\nforum_image:\n.incbin \"" IMAGE_FILE
        "\"\nforum_image_end:\n.previous\n");
extern const char forum_image[] __attribute__((visibility("hidden")));
extern const char forum_image_end[] __attribute__((visibility("hidden")));

/* The launched kernel: its image and its name. */
struct source {
    const char *image, *image_end, *name;
};

/* Returns the image and the name from the program's constants, as in a lowered program. */
static inline struct source forum_constants(void) {
    return (struct source){forum_image, forum_image_end, KERNEL};
}

/* Returns copies of the image and the name on the heap, as a JIT does; a JIT may reuse this memory
 * later. */
static inline struct source forum_copies(void) {
    const size_t size = (size_t)(forum_image_end - forum_image);
    char *image = malloc(size + 8);
    char *name = strdup(KERNEL);
    if (!image || !name)
        fail("no memory", "for the image");
    image += 8; /* malloc aligns to 16 */
    return (struct source){memcpy(image, forum_image, size), image + size, name};
}

/* The functions of HIP for the hoisted loop. The first three run before the loop, and the last two
 * run in each iteration. */
struct hip {
    int (*ModuleLoadData)(void **module, const void *image);
    int (*ModuleGetFunction)(void **function, void *module, const char *name);
    int (*StreamCreate)(void **stream);
    int (*StreamSynchronize)(void *stream);
    int (*ModuleLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,
                              void *stream, void **params, void **extra);
    /* Objects that the loop keeps between iterations. */
    void *module, *function, *stream;
};

static inline void resolve_hip(struct hip *hip, void *library) {
#define RESOLVE(name) *(void **)&hip->name = symbol(library, "hip" #name)
    RESOLVE(ModuleLoadData);
    RESOLVE(ModuleGetFunction);
    RESOLVE(StreamCreate);
    RESOLVE(StreamSynchronize);
    RESOLVE(ModuleLaunchKernel);
#undef RESOLVE
}

/* Makes the 7 calls of LLVM 13 to 20 for a synchronous launch. */
static inline void forum_7_calls(const struct runtime *runtime, struct source source,
                                 long iterations) {
    const size_t size = (size_t)(source.image_end - source.image);
    for (long i = 0; i < iterations; i++) {
        void *params[1];
        void *module = runtime->ModuleLoad(source.image, size);
        void *function = runtime->ModuleGetFunction(module, source.name);
        void *stream = runtime->StreamCreate();
        runtime->LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 0);
        runtime->StreamSynchronize(stream);
        runtime->StreamDestroy(stream);
        runtime->ModuleUnload(module);
    }
}

/* Makes the 5 calls of LLVM 21 to 24 for a synchronous launch; the caller has loaded the module. */
static inline void forum_5_calls(const struct runtime *runtime, void *module, const char *name,
                                 long iterations) {
    for (long i = 0; i < iterations; i++) {
        void *params[1];
        void *function = runtime->ModuleGetFunction(module, name);
        void *stream = runtime->StreamCreate();
        runtime->LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 0);
        runtime->StreamSynchronize(stream);
        runtime->StreamDestroy(stream);
    }
}

/* Makes only the 2 calls that every iteration needs: the launch and the synchronise. */
static inline void forum_2_calls(const struct hip *hip, long iterations) {
    for (long i = 0; i < iterations; i++) {
        void *params[1];
        hip->ModuleLaunchKernel(hip->function, 1, 1, 1, 1, 1, 1, 0, hip->stream, params, NULL);
        hip->StreamSynchronize(hip->stream);
    }
}

/* Loads the module of the hoisted loop. */
static inline void prepare_hip(struct hip *hip, const char *path) {
    resolve_hip(hip, open_library(path));
    if (hip->ModuleLoadData(&hip->module, forum_image) != 0 ||
        hip->ModuleGetFunction(&hip->function, hip->module, KERNEL) != 0 ||
        hip->StreamCreate(&hip->stream) != 0)
        fail("HIP cannot load the kernel", path);
}

#endif
