/* Functions for compilers other than LLVM's. FlyDSL asks for a kernel's occupancy, and reads and
 * clears a buffer of traces; another compiler asks for a global's address. */
#include "driver/refusal.h"
#include "driver/report.h"
#include "modules/modules.h"
#include "process/options.h"

static const char global_expression[] = "hipModuleGetGlobal(devPtr, bytes, module, name)";

static struct advice inquiry_of_unloaded = {
    .text = "mgpuModuleGetGlobal was asked for '%s' of module %p, which was unloaded before"};
static struct advice no_such_global = {
    .text = "module %p has no global '%s' that the host can reach: is it external in its image?"};

/* The global may lie where the program had pageable memory, as HIP has described it before. From
 * this call on HIP describes the global as device memory.
 *
 * The program may write to the returned address. HIP knows no global of a module that serves
 * several loads (image.h). */
void impl_mgpuModuleGetGlobal(void **devPtr, size_t *bytes, hipModule_t module, const char *name) {
    (void)thread_get();
    const char *text = name ? name : "(null)";
    struct module *known = caches_on() ? handle_find(&module_map, module) : NULL;
    const int state = known ? module_state_asked(known) : MODULE_GONE;
    *devPtr = NULL;
    *bytes = 0;
    if (state == MODULE_IDLE) {
        REPORT(global_expression, refusal_of_module(), &inquiry_of_unloaded, text, (void *)module);
        return;
    }
    REPORT(global_expression, hip.ModuleGetGlobal(devPtr, bytes, module, name), &no_such_global,
           (void *)module, text);
    PROOF_STEP(global_ends_the_answers_about_addresses, ranges_change());
}

/* Returns how many workgroups of blockThreads threads a multiprocessor (compute unit) can run at
 * once; 0 after a failure. */
int32_t impl_mgpuModuleOccupancyMaxActiveBlocks(void *image, const char *name, int32_t blockThreads,
                                                int32_t smem) {
    int blocks = 0;
    const hipModule_t module = impl_mgpuModuleLoad(image, 0);
    const hipFunction_t function = module ? impl_mgpuModuleGetFunction(module, name) : NULL;
    if (function)
        REPORT("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor( &blocks, function, "
               "blockSize, smem)",
               hip.ModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, blockThreads,
                                                                   (size_t)smem),
               NULL);
    if (module)
        impl_mgpuModuleUnload(module);
    return blocks;
}

/* ---- FlyDSL's trace buffer: device memory, read while nothing runs ---- */

/* mgpuTraceBufferRead and mgpuTraceBufferClear return HIP's error and print nothing. */
int32_t impl_mgpuTraceBufferRead(void *dst, void *buffer, uint64_t sizeBytes) {
    (void)thread_get();
    hipError_t error = hip.DeviceSynchronize();
    if (error == hipSuccess)
        error = hip.MemcpyAsync(dst, buffer, sizeBytes, hipMemcpyDefault, NULL);
    return error == hipSuccess ? hip.StreamSynchronize(NULL) : error;
}

int32_t impl_mgpuTraceBufferClear(void *buffer, uint64_t sizeBytes) {
    static const char zeros[sizeof(int32_t)];
    const uint64_t words = sizeBytes / sizeof(int32_t), rest = sizeBytes % sizeof(int32_t);
    (void)thread_get();
    hipError_t error = hip.DeviceSynchronize();
    if (error == hipSuccess && words)
        error = hip.MemsetD32Async(buffer, 0, words, NULL);
    if (error == hipSuccess && rest)
        error = hip.MemcpyAsync((char *)buffer + words * sizeof(int32_t), zeros, rest,
                                hipMemcpyDefault, NULL);
    return error == hipSuccess ? hip.DeviceSynchronize() : error;
}
