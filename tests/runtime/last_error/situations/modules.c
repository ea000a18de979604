/* Situations of mgpuModule*: loads, unloads, look-ups. */
#include "../setting.h"

#include <string.h>

/* ---- modules ---- */

SITUATION(load_miss) {
    void *image = new_image();
    hipModule_t module;
    CALL(module = load(image));
    mgpuModuleUnload(module);
}

SITUATION(load_hit) {
    void *image = new_image();
    hipModule_t module;
    mgpuModuleUnload(load(image));
    CALL(module = load(image));
    mgpuModuleUnload(module);
}

SITUATION(load_of_a_copy) {
    hipModule_t module;
    mgpuModuleUnload(load(situation_file("good", false)));
    void *copy = situation_file("good", false);
    CALL(module = load(copy));
    mgpuModuleUnload(module);
}

SITUATION(load_again_while_held) {
    void *image = new_image();
    hipModule_t first = load(image), second;
    CALL(second = load(image));
    mgpuModuleUnload(first);
    mgpuModuleUnload(second);
}

SITUATION(load_with_globals) {
    void *image = situation_file("globals", false);
    hipModule_t module;
    mgpuModuleUnload(load(image));
    CALL(module = load(image));
    mgpuModuleUnload(module);
}

SITUATION(load_null) {
    CALL(load(NULL));
}

/* Defines two situations for a wrong image. The memory behind the image is readable in the first
 * situation, and unreadable in the second situation. */
#define WRONG_IMAGE(name)                                                                          \
    SITUATION(load_##name) {                                                                       \
        void *image = situation_file(#name, false);                                                \
        CALL(load(image));                                                                         \
    }                                                                                              \
    SITUATION(load_##name##_at_the_end) {                                                          \
        void *image = situation_file(#name, true);                                                 \
        CALL(load(image));                                                                         \
    }
#include "../wrong_images.def"
#undef WRONG_IMAGE

SITUATION(load_unreadable) {
    char *image = situation_file("few_bytes", true);
    CALL(load(image + 4));
}

SITUATION(load_jit) {
    void *image = new_image();
    if (mgpuModuleLoadJIT != NULL)
        CALL(mgpuModuleLoadJIT(image, 2, 0));
}

SITUATION(load_jit_text) {
    void *image = situation_file("text", false);
    CALL(mgpuModuleLoadJIT(image, 2, 0));
}

SITUATION(unload) {
    hipModule_t module = loaded();
    CALL(mgpuModuleUnload(module));
}

SITUATION(unload_with_globals) {
    hipModule_t module = load(situation_file("globals", false));
    CALL(mgpuModuleUnload(module));
}

SITUATION(unload_null) {
    CALL(mgpuModuleUnload(NULL));
}

SITUATION(unload_unknown) {
    CALL(mgpuModuleUnload(UNKNOWN(hipModule_t)));
}

SITUATION(unload_twice) {
    hipModule_t module = unloaded();
    CALL(mgpuModuleUnload(module));
}

/* ---- functions ---- */

SITUATION(function_miss) {
    hipModule_t module = loaded();
    CALL(mgpuModuleGetFunction(module, kernel_name));
    mgpuModuleUnload(module);
}

SITUATION(function_hit) {
    hipModule_t module = loaded();
    mgpuModuleGetFunction(module, kernel_name);
    CALL(mgpuModuleGetFunction(module, kernel_name));
    mgpuModuleUnload(module);
}

SITUATION(function_by_a_copy_of_its_name) {
    hipModule_t module = loaded();
    char *name = strdup(kernel_name);
    mgpuModuleGetFunction(module, kernel_name);
    CALL(mgpuModuleGetFunction(module, name));
    mgpuModuleUnload(module);
}

SITUATION(function_unknown) {
    hipModule_t module = loaded();
    CALL(mgpuModuleGetFunction(module, "no_such_kernel"));
    mgpuModuleUnload(module);
}

SITUATION(function_without_a_name) {
    hipModule_t module = loaded();
    CALL(mgpuModuleGetFunction(module, ""));
    mgpuModuleUnload(module);
}

SITUATION(function_null_name) {
    hipModule_t module = loaded();
    CALL(mgpuModuleGetFunction(module, NULL));
    mgpuModuleUnload(module);
}

SITUATION(function_of_a_null_module) {
    CALL(mgpuModuleGetFunction(NULL, kernel_name));
}

SITUATION(function_of_a_null_module_without_a_name) {
    CALL(mgpuModuleGetFunction(NULL, NULL));
}

SITUATION(function_of_an_unknown_module) {
    CALL(mgpuModuleGetFunction(UNKNOWN(hipModule_t), kernel_name));
}

SITUATION(function_of_an_unloaded_module) {
    hipModule_t module = unloaded();
    CALL(mgpuModuleGetFunction(module, kernel_name));
}
