#include "setting.h"

#include <string.h>

const char kernel_name[] = "test_func";
char host[64 * KIB];
uint64_t nothing[512];

void *new_image(void) {
    static uint32_t number;
    char *image = situation_file("good", false);
    ++number;
    memcpy(image + 10, &number, sizeof number);
    return image;
}

hipModule_t load(void *image) {
    return mgpuModuleLoad(image, 0);
}

hipModule_t loaded(void) {
    return load(new_image());
}

hipModule_t unloaded(void) {
    hipModule_t module = loaded();
    mgpuModuleUnload(module);
    return module;
}

hipFunction_t kernel(void) {
    static hipFunction_t function;
    if (function == NULL)
        function = mgpuModuleGetFunction(loaded(), kernel_name);
    return function;
}

hipStream_t stream_new(void) {
    return mgpuStreamCreate();
}

hipStream_t stream_destroyed(void) {
    hipStream_t stream = mgpuStreamCreate();
    mgpuStreamDestroy(stream);
    return stream;
}

hipEvent_t event_destroyed(void) {
    hipEvent_t event = mgpuEventCreate();
    mgpuEventDestroy(event);
    return event;
}

void *block_of(size_t bytes) {
    return mgpuMemAlloc(bytes, NULL, false);
}

void give_back(void *block) {
    mgpuMemFree(block, NULL);
}

void launch(hipFunction_t function, intptr_t grid, intptr_t block, int32_t shared,
            hipStream_t stream) {
    mgpuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, NULL, NULL, 0);
}

void launch_cooperatively(hipFunction_t function, intptr_t grid, intptr_t block,
                          hipStream_t stream) {
    mgpuLaunchKernelCooperative(function, grid, 1, 1, 0, 0, 0, block, 1, 1, 0, stream, NULL, NULL);
}
