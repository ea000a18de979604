/* Runs the forum's loop with any runtime, as a lowered program does: each function has one call
 * site, and the image is read-only data.
 *
 * IMAGE_FILE is the path of the code object, and KERNEL is the name of a kernel in this file. */
#ifndef BENCH_FORUM_H
#define BENCH_FORUM_H

#include "hip.h"
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

/* Makes only the 2 calls that every iteration needs, the launch and the synchronise, with a kept
 * function and stream. */
static inline void forum_2_calls(handle function, handle stream, long iterations) {
    for (long i = 0; i < iterations; i++) {
        void *params[1];
        hip.ModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
        hip.StreamSynchronize(stream);
    }
}

/* Opens HIP, and returns the kernel for the hoisted loop. */
static inline handle prepare_hip(const char *path) {
    handle module, function;
    open_hip(path);
    CALL(ModuleLoadData, &module, forum_image);
    CALL(ModuleGetFunction, &function, module, KERNEL);
    return function;
}

#endif
