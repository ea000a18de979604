/* The situations: each function in success, by a miss and by a hit of a cache, and in each kind of
 * failure. */
#include "situation.h"

#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10 };

static const char kernel_name[] = "test_func";
static uint64_t nothing[512]; /* no handle, no device memory */

#define UNKNOWN(type) ((type)(void *)nothing)

/* ---- what situations begin with ---- */

/* An image that was not loaded before: the same code, with a number in the header's padding. */
static void *new_image(void) {
    static uint32_t number;
    char *image = situation_file("good", false);
    ++number;
    memcpy(image + 10, &number, sizeof number);
    return image;
}

static hipModule_t load(void *image) {
    return mgpuModuleLoad(image, 0);
}

static hipModule_t loaded(void) {
    return load(new_image());
}

static hipModule_t unloaded(void) {
    hipModule_t module = loaded();
    mgpuModuleUnload(module);
    return module;
}

static hipFunction_t kernel(void) {
    static hipFunction_t function;
    if (function == NULL)
        function = mgpuModuleGetFunction(loaded(), kernel_name);
    return function;
}

static hipStream_t stream_new(void) {
    return mgpuStreamCreate();
}

static hipStream_t stream_destroyed(void) {
    hipStream_t stream = mgpuStreamCreate();
    mgpuStreamDestroy(stream);
    return stream;
}

static hipEvent_t event_destroyed(void) {
    hipEvent_t event = mgpuEventCreate();
    mgpuEventDestroy(event);
    return event;
}

static void *block_of(size_t bytes) {
    return mgpuMemAlloc(bytes, NULL, false);
}

static void give_back(void *block) {
    mgpuMemFree(block, NULL);
}

static void launch(hipFunction_t function, intptr_t grid, intptr_t block, int32_t shared,
                   hipStream_t stream) {
    mgpuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, NULL, NULL, 0);
}

static void launch_cooperatively(hipFunction_t function, intptr_t grid, intptr_t block,
                                 hipStream_t stream) {
    mgpuLaunchKernelCooperative(function, grid, 1, 1, 0, 0, 0, block, 1, 1, 0, stream, NULL, NULL);
}

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

/* ... and those of wrong images, of which each may lie before memory that can be read, or not. */
#define WRONG_IMAGE(name)                                                                          \
    SITUATION(load_##name) {                                                                       \
        void *image = situation_file(#name, false);                                                \
        CALL(load(image));                                                                         \
    }                                                                                              \
    SITUATION(load_##name##_at_the_end) {                                                          \
        void *image = situation_file(#name, true);                                                 \
        CALL(load(image));                                                                         \
    }
#include "wrong_images.def"
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

/* ---- launches ---- */

SITUATION(launch_good) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_new();
    CALL(launch(function, 1, 1, 0, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(launch_without_a_stream) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 0, NULL));
}

SITUATION(launch_null) {
    CALL(launch(NULL, 1, 1, 0, NULL));
}

SITUATION(launch_no_blocks) {
    hipFunction_t function = kernel();
    CALL(launch(function, 0, 1, 0, NULL));
}

SITUATION(launch_no_threads) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 0, 0, NULL));
}

SITUATION(launch_block_beyond_the_kernels) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 512, 0, NULL));
}

SITUATION(launch_block_beyond_the_devices) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 4096, 0, NULL));
}

SITUATION(launch_grid_too_large) {
    hipFunction_t function = kernel();
    CALL(launch(function, (intptr_t)1 << 31, 256, 0, NULL));
}

SITUATION(launch_shared_memory_too_large) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 1 << 20, NULL));
}

SITUATION(launch_on_a_destroyed_stream) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_destroyed();
    CALL(launch(function, 1, 1, 0, stream));
}

SITUATION(launch_on_an_unknown_stream) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 0, UNKNOWN(hipStream_t)));
}

SITUATION(cooperative_good) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 1, 1, NULL));
}

SITUATION(cooperative_null) {
    CALL(launch_cooperatively(NULL, 1, 1, NULL));
}

SITUATION(cooperative_no_blocks) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 0, 1, NULL));
}

SITUATION(cooperative_too_large) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 1 << 20, 256, NULL));
}

SITUATION(cooperative_on_a_destroyed_stream) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_destroyed();
    CALL(launch_cooperatively(function, 1, 1, stream));
}

SITUATION(cooperative_in_clusters) {
    hipFunction_t function = kernel();
    CALL(mgpuLaunchKernelCooperative(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SITUATION(clusters_of_one) {
    hipFunction_t function = kernel();
    if (mgpuLaunchClusterKernel != NULL)
        CALL(mgpuLaunchClusterKernel(function, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SITUATION(clusters) {
    hipFunction_t function = kernel();
    if (mgpuLaunchClusterKernel != NULL)
        CALL(mgpuLaunchClusterKernel(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SITUATION(symbol_unknown) {
    CALL(mgpuLaunchKernelRT(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0));
}

SITUATION(symbol_null) {
    CALL(mgpuLaunchKernelRT(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0));
}

/* ---- streams ---- */

SITUATION(stream_create_miss) {
    hipStream_t first = stream_new(), second;
    CALL(second = mgpuStreamCreate());
    mgpuStreamDestroy(first);
    mgpuStreamDestroy(second);
}

SITUATION(stream_create_hit) {
    hipStream_t stream = stream_destroyed();
    CALL(stream = mgpuStreamCreate());
    mgpuStreamDestroy(stream);
}

SITUATION(stream_create_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    mgpuStreamDestroy(stream);
    CALL(stream = mgpuStreamCreate());
    mgpuStreamDestroy(stream);
}

SITUATION(stream_destroy) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_not_the_last) {
    hipStream_t first = stream_new(), second = stream_new();
    CALL(mgpuStreamDestroy(first));
    mgpuStreamDestroy(second);
}

SITUATION(stream_destroy_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_null) {
    CALL(mgpuStreamDestroy(NULL));
}

SITUATION(stream_destroy_unknown) {
    CALL(mgpuStreamDestroy(UNKNOWN(hipStream_t)));
}

SITUATION(stream_destroy_twice) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamDestroy(stream));
}

/* HIP 7 does not look, and goes on with memory that it has freed. */
SITUATION(stream_destroy_after_hips) {
    hipStream_t stream = stream_new();
    int version = 0;
    HIP(hipRuntimeGetVersion, int *)(&version);
    HIP(hipStreamDestroy, hipStream_t)(stream);
    if (version < 70000000)
        CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_of_the_programs_own) {
    hipStream_t stream;
    HIP(hipStreamCreate, hipStream_t *)(&stream);
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(synchronize_idle) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamSynchronize(stream));
    mgpuStreamDestroy(stream);
}

SITUATION(synchronize_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuStreamSynchronize(stream));
    mgpuStreamDestroy(stream);
}

SITUATION(synchronize_null) {
    CALL(mgpuStreamSynchronize(NULL));
}

SITUATION(synchronize_destroyed) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamSynchronize(stream));
}

SITUATION(synchronize_unknown) {
    CALL(mgpuStreamSynchronize(UNKNOWN(hipStream_t)));
}

SITUATION(wait_event) {
    hipStream_t first = stream_new(), second = stream_new();
    hipEvent_t event = mgpuEventCreate();
    launch(kernel(), 1, 1, 0, first);
    mgpuEventRecord(event, first);
    CALL(mgpuStreamWaitEvent(second, event));
    mgpuStreamSynchronize(second);
    mgpuEventDestroy(event);
    mgpuStreamDestroy(first);
    mgpuStreamDestroy(second);
}

SITUATION(wait_event_without_a_stream) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    mgpuEventRecord(event, stream);
    CALL(mgpuStreamWaitEvent(NULL, event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_never_recorded) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_null) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamWaitEvent(stream, NULL));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_destroyed) {
    hipStream_t stream = stream_new();
    hipEvent_t event = event_destroyed();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_that_is_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamWaitEvent(stream, (hipEvent_t)stream));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_on_a_destroyed_stream) {
    hipEvent_t event = mgpuEventCreate();
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuEventDestroy(event);
}

/* ---- events ---- */

SITUATION(event_create_miss) {
    hipEvent_t first = mgpuEventCreate(), second;
    CALL(second = mgpuEventCreate());
    mgpuEventDestroy(first);
    mgpuEventDestroy(second);
}

SITUATION(event_create_hit) {
    hipEvent_t event = event_destroyed();
    CALL(event = mgpuEventCreate());
    mgpuEventDestroy(event);
}

SITUATION(event_create_after_a_record) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    launch(kernel(), 1, 1, 0, stream);
    mgpuEventRecord(event, stream);
    mgpuEventDestroy(event);
    CALL(event = mgpuEventCreate());
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

/* A stream of the program's own, since one of the runtime's may be kept. */
SITUATION(event_create_after_a_record_on_a_stream_that_is_gone) {
    hipStream_t stream;
    hipEvent_t event = mgpuEventCreate();
    HIP(hipStreamCreate, hipStream_t *)(&stream);
    mgpuEventRecord(event, stream);
    mgpuEventDestroy(event);
    HIP(hipStreamSynchronize, hipStream_t)(stream);
    HIP(hipStreamDestroy, hipStream_t)(stream);
    CALL(event = mgpuEventCreate());
    mgpuEventDestroy(event);
}

SITUATION(event_destroy) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventDestroy(event));
}

SITUATION(event_destroy_null) {
    CALL(mgpuEventDestroy(NULL));
}

SITUATION(event_destroy_twice) {
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventDestroy(event));
}

SITUATION(event_destroy_unknown) {
    CALL(mgpuEventDestroy(UNKNOWN(hipEvent_t)));
}

SITUATION(event_destroy_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventDestroy((hipEvent_t)stream));
}

SITUATION(event_synchronize) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    launch(kernel(), 1, 1, 0, stream);
    mgpuEventRecord(event, stream);
    CALL(mgpuEventSynchronize(event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(event_synchronize_never_recorded) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventSynchronize(event));
    mgpuEventDestroy(event);
}

SITUATION(event_synchronize_null) {
    CALL(mgpuEventSynchronize(NULL));
}

SITUATION(event_synchronize_destroyed) {
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventSynchronize(event));
}

SITUATION(event_synchronize_unknown) {
    CALL(mgpuEventSynchronize(UNKNOWN(hipEvent_t)));
}

SITUATION(event_synchronize_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventSynchronize((hipEvent_t)stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventRecord(event, stream));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(record_without_a_stream) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventRecord(event, NULL));
    mgpuEventDestroy(event);
}

SITUATION(record_null) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventRecord(NULL, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_destroyed) {
    hipStream_t stream = stream_new();
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventRecord(event, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventRecord((hipEvent_t)stream, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_on_a_destroyed_stream) {
    hipEvent_t event = mgpuEventCreate();
    hipStream_t stream = stream_destroyed();
    CALL(mgpuEventRecord(event, stream));
    mgpuEventDestroy(event);
}

/* ---- memory ---- */

SITUATION(alloc_miss) {
    void *block;
    CALL(block = mgpuMemAlloc(12345, NULL, false));
    give_back(block);
}

SITUATION(alloc_hit) {
    void *block;
    give_back(block_of(KIB));
    CALL(block = mgpuMemAlloc(KIB, NULL, false));
    give_back(block);
}

SITUATION(alloc_hit_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    mgpuMemFree(block, stream);
    CALL(block = mgpuMemAlloc(KIB, stream, false));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(alloc_on_a_destroyed_stream) {
    hipStream_t stream = stream_destroyed();
    void *block;
    CALL(block = mgpuMemAlloc(2 * KIB, stream, false));
    give_back(block);
}

SITUATION(alloc_nothing) {
    CALL(mgpuMemAlloc(0, NULL, false));
}

SITUATION(alloc_too_much) {
    CALL(mgpuMemAlloc((uint64_t)1 << 50, NULL, false));
}

SITUATION(alloc_absurd) {
    CALL(mgpuMemAlloc(UINT64_MAX, NULL, false));
}

SITUATION(alloc_almost_absurd) {
    CALL(mgpuMemAlloc(UINT64_MAX - 300, NULL, false));
}

SITUATION(alloc_shared) {
    void *block;
    CALL(block = mgpuMemAlloc(KIB, NULL, true));
    give_back(block);
}

SITUATION(alloc_shared_too_much) {
    CALL(mgpuMemAlloc((uint64_t)1 << 50, NULL, true));
}

SITUATION(alloc_shared_nothing) {
    CALL(mgpuMemAlloc(0, NULL, true));
}

SITUATION(free_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemFree(block, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(free_without_a_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemFree(block, stream));
}

SITUATION(free_on_an_unknown_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemFree(block, UNKNOWN(hipStream_t)));
}

SITUATION(free_null) {
    CALL(mgpuMemFree(NULL, NULL));
}

SITUATION(free_unknown) {
    CALL(mgpuMemFree(nothing, NULL));
}

SITUATION(free_twice) {
    void *block = block_of(KIB);
    give_back(block);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_twice_on_a_stream) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    mgpuMemFree(block, stream);
    CALL(mgpuMemFree(block, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(free_inside_a_block) {
    char *block = block_of(KIB);
    CALL(mgpuMemFree(block + 64, NULL));
}

SITUATION(free_inside_a_freed_block) {
    char *block = block_of(KIB);
    give_back(block);
    CALL(mgpuMemFree(block + 64, NULL));
}

SITUATION(free_shared) {
    void *block = mgpuMemAlloc(KIB, NULL, true);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_of_the_programs_own) {
    void *block;
    HIP(hipMalloc, void **, size_t)(&block, KIB);
    CALL(mgpuMemFree(block, NULL));
}

SITUATION(free_after_hips) {
    void *block = block_of(KIB);
    HIP(hipFree, void *)(block);
    CALL(mgpuMemFree(block, NULL));
}

/* ---- copies and fills ---- */

static char host[64 * KIB];

SITUATION(copy_up) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(block, host, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_up_after_work) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuMemcpy(block, host, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_down) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(host, block, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_between_blocks) {
    hipStream_t stream = stream_new();
    void *from = mgpuMemAlloc(KIB, stream, false), *to = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(to, from, KIB, stream));
    mgpuMemFree(from, stream);
    mgpuMemFree(to, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_without_a_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, KIB, NULL));
    mgpuStreamSynchronize(NULL);
    give_back(block);
}

SITUATION(copy_from_pinned_memory) {
    hipStream_t stream = stream_new();
    void *pinned, *block = mgpuMemAlloc(KIB, stream, false);
    HIP(hipHostMalloc, void **, size_t, unsigned)(&pinned, KIB, 0);
    CALL(mgpuMemcpy(block, pinned, KIB, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_nothing) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, 0, NULL));
    give_back(block);
}

SITUATION(copy_null_and_nothing) {
    CALL(mgpuMemcpy(NULL, NULL, 0, NULL));
}

SITUATION(copy_to_null) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(NULL, block, KIB, stream));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_beyond_a_block) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemcpy(block, host, sizeof host, stream));
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(copy_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemcpy(block, host, KIB, stream));
    give_back(block);
}

SITUATION(copy_nothing_on_a_destroyed_stream) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemcpy(NULL, NULL, 0, stream));
}

SITUATION(copy_on_an_unknown_stream) {
    void *block = block_of(KIB);
    CALL(mgpuMemcpy(block, host, KIB, UNKNOWN(hipStream_t)));
    give_back(block);
}

SITUATION(fill32) {
    void *block = block_of(KIB);
    CALL(mgpuMemset32(block, 1, KIB / 4, NULL));
    give_back(block);
}

SITUATION(fill32_nothing) {
    void *block = block_of(KIB);
    CALL(mgpuMemset32(block, 1, 0, NULL));
    give_back(block);
}

SITUATION(fill32_null) {
    CALL(mgpuMemset32(NULL, 1, 4, NULL));
}

SITUATION(fill32_of_nobodys_memory) {
    CALL(mgpuMemset32((void *)0x1000, 1, 4, NULL));
}

SITUATION(fill32_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemset32(block, 1, KIB / 4, stream));
    give_back(block);
}

SITUATION(fill16) {
    hipStream_t stream = stream_new();
    void *block = mgpuMemAlloc(KIB, stream, false);
    CALL(mgpuMemset16(block, 1, KIB / 2, stream));
    mgpuStreamSynchronize(stream);
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
}

SITUATION(fill16_null) {
    CALL(mgpuMemset16(NULL, 1, 4, NULL));
}

SITUATION(fill16_on_a_destroyed_stream) {
    void *block = block_of(KIB);
    hipStream_t stream = stream_destroyed();
    CALL(mgpuMemset16(block, 1, KIB / 2, stream));
    give_back(block);
}

/* ---- host memory ---- */

static char pages[4][4096] __attribute__((aligned(4096)));

struct row { /* a memref of rank 1 */
    char *allocated, *aligned;
    int64_t offset, size, stride;
};

SITUATION(host_register) {
    CALL(mgpuMemHostRegister(pages[0], sizeof pages[0]));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(host_register_null) {
    CALL(mgpuMemHostRegister(NULL, sizeof pages[0]));
}

SITUATION(host_register_nothing) {
    CALL(mgpuMemHostRegister(pages[0], 0));
}

SITUATION(host_register_twice) {
    mgpuMemHostRegister(pages[1], sizeof pages[1]);
    CALL(mgpuMemHostRegister(pages[1], sizeof pages[1]));
    mgpuMemHostUnregister(pages[1]);
}

SITUATION(host_register_memref) {
    struct row row = {pages[2], pages[2], 0, sizeof pages[2], 1};
    CALL(mgpuMemHostRegisterMemRef(1, (struct mgpu_memref *)&row, 1));
    mgpuMemHostUnregister(pages[2]);
}

SITUATION(host_unregister) {
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemHostUnregister(pages[0]));
}

SITUATION(host_unregister_memref) {
    struct row row = {pages[2], pages[2], 0, sizeof pages[2], 1};
    mgpuMemHostRegister(pages[2], sizeof pages[2]);
    CALL(mgpuMemHostUnregisterMemRef(1, (struct mgpu_memref *)&row, 1));
}

SITUATION(host_unregister_null) {
    CALL(mgpuMemHostUnregister(NULL));
}

SITUATION(host_unregister_unknown) {
    CALL(mgpuMemHostUnregister(pages[3]));
}

SITUATION(device_memref) {
    float *memory = (float *)pages[0];
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemGetDeviceMemRef1dFloat(memory, memory, 0, 4, 1));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(device_memref_unregistered) {
    float *memory = (float *)pages[3];
    CALL(mgpuMemGetDeviceMemRef1dFloat(memory, memory, 0, 4, 1));
}

SITUATION(device_memref_of_int32) {
    int32_t *memory = (int32_t *)pages[0];
    mgpuMemHostRegister(pages[0], sizeof pages[0]);
    CALL(mgpuMemGetDeviceMemRef1dInt32(memory, memory, 0, 4, 1));
    mgpuMemHostUnregister(pages[0]);
}

SITUATION(device_memref_of_int32_unregistered) {
    CALL(mgpuMemGetDeviceMemRef1dInt32(NULL, NULL, 0, 4, 1));
}

/* ---- the device ---- */

SITUATION(set_device) {
    CALL(mgpuSetDefaultDevice(0));
}

SITUATION(set_device_too_large) {
    CALL(mgpuSetDefaultDevice(99));
}

SITUATION(set_device_negative) {
    CALL(mgpuSetDefaultDevice(-1));
}

/* ---- tensor maps ---- */

SITUATION(tensor_map) {
    if (mgpuTensorMapEncodeTiled != NULL)
        CALL(mgpuTensorMapEncodeTiled(host, 0, 1, host, NULL, NULL, NULL, NULL, 0, 0, 0, 0));
}

SITUATION(tensor_map_of_a_memref) {
    struct row row = {host, host, 0, KIB, 1};
    const int64_t box = 64;
    if (mgpuTensorMapEncodeTiledMemref != NULL)
        CALL(mgpuTensorMapEncodeTiledMemref(1, (struct mgpu_memref *)&row, 0, 0, 0, 0, 0, &box));
}
