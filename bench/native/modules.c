/* Loads many modules at the start, as programs lowered by LLVM 21 and later do, and uses a few of
 * these modules.
 *
 *     modules RUNTIME USED     JSON: ns from the first load to the end of the last launch
 *
 * The program's constants contain COPIES copies of an image. A load cannot reuse a module that the
 * program holds, so the library loads each copy separately. */
#include "forum.h"

#define COPIES 200
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

__asm__(".section .rodata\n.balign 64\ncopies:\n.rept " TEXT(
    COPIES) "\n.incbin \"" IMAGE_FILE "\"\n.balign 64\n.endr\ncopies_end:\n.previous\n");
extern const char copies[] __attribute__((visibility("hidden")));
extern const char copies_end[] __attribute__((visibility("hidden")));

static void use(const struct runtime *runtime, void *module, void *stream) {
    void *params[1];
    void *function = runtime->ModuleGetFunction(module, KERNEL);
    if (!function)
        fail("the runtime cannot load the image", KERNEL);
    runtime->LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL, 0);
    runtime->StreamSynchronize(stream);
}

int main(int argc, char **argv) {
    static void *modules[COPIES];
    struct runtime runtime;
    if (argc != 3)
        fail("usage", "see the head of modules.c");
    const long used = atol(argv[2]);
    const size_t each = (size_t)(copies_end - copies) / COPIES;
    resolve_runtime(&runtime, open_library(argv[1]));
    void *stream = runtime.StreamCreate(); /* HIP starts here, before the clock starts */
    const uint64_t begin = now_ns();
    for (int i = 0; i < COPIES; i++)
        modules[i] = runtime.ModuleLoad(copies + (size_t)i * each, 0);
    for (long i = 0; i < used; i++)
        use(&runtime, modules[i * COPIES / used], stream);
    printf("{\"ns\": %llu}\n", (unsigned long long)(now_ns() - begin));
    for (int i = 0; i < COPIES; i++)
        runtime.ModuleUnload(modules[i]);
    runtime.StreamDestroy(stream);
    return 0;
}
