/* Why the driver refused a launch, as far as the kernel's image tells. */
#include "launch/launch_advice.h"
#include "driver/report.h"
#include "modules/image/metadata.h"
#include "modules/modules.h"
#include "process/state.h"
#include "proof.h"

#include <stdio.h>

static struct advice block_too_large = {
    .text = "a block of %ld x %ld x %ld threads is more than the %ld that kernel '%s' was compiled "
            "for: say its size by gpu.known_block_size, or launch smaller blocks"};
static struct advice bad_launch = {
    .text = "grid %ld x %ld x %ld, block %ld x %ld x %ld, %d bytes of dynamic workgroup memory: "
            "each size must be at least 1, a block may have no more threads than the kernel was "
            "compiled for (gpu.known_block_size) and never more than 1024, and the memory must "
            "fit"};

struct kernel {
    char name[256];
    uint64_t block_limit; /* 0: not known */
};

static struct kernel kernel_of(hipFunction_t handle) {
    struct kernel kernel = {"", 0};
    struct module *module;
    pthread_mutex_lock(&tables_lock);
    const struct function *function = module_search(handle, &module);
    if (function) {
        snprintf(kernel.name, sizeof kernel.name, "%s", function->name);
        kernel.block_limit = metadata_block_limit(&module->image, function->name);
    }
    pthread_mutex_unlock(&tables_lock);
    return kernel;
}

void advise_launch(const char *expression, hipError_t error, const struct launch *launch) {
    const intptr_t *grid = launch->grid, *block = launch->block;
    const struct kernel kernel = kernel_of(launch->function);
    const uint64_t threads = (uint64_t)block[0] * (uint64_t)block[1] * (uint64_t)block[2];
    if (DOUBT(block_exceeds_its_kernels, kernel.block_limit && threads > kernel.block_limit))
        report_failure(expression, error, &block_too_large, (long)block[0], (long)block[1],
                       (long)block[2], (long)kernel.block_limit, kernel.name);
    else
        report_failure(expression, error, &bad_launch, (long)grid[0], (long)grid[1], (long)grid[2],
                       (long)block[0], (long)block[1], (long)block[2], launch->smem);
}
