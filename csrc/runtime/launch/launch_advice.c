#include "launch/launch_advice.h"
#include "driver/report.h"
#include "modules/image/metadata.h"
#include "modules/modules.h"

#include <stdio.h>
#include <string.h>

static struct advice cut = {
    .text = "HIP takes 32 bits of each size: a grid of %ld x %ld x %ld with blocks of %ld x %ld x "
            "%ld becomes a grid of %u x %u x %u with blocks of %u x %u x %u"};
static struct advice block_too_large = {
    .text = "a block of %ld x %ld x %ld threads is more than the %ld that kernel '%s' was compiled "
            "for: %s"};
static const char no_larger[] = "no GPU takes more than 1024, so launch smaller blocks";
static const char larger[] = "give its size in known_block_size, an attribute of gpu.func (a "
                             "gpu.launch: by constants), or launch smaller blocks";
static struct advice bad_launch = {
    .text =
        "grid %ld x %ld x %ld, block %ld x %ld x %ld, %u bytes of dynamic workgroup memory: %s"};
static const char too_small[] = "each size must be at least 1";
static const char too_large[] = "a dimension of the grid may have at most 2^32 - 1 (4,294,967,295) "
                                "threads";
static const char too_much_memory[] =
    "on most AMD GPUs a block has 64 KB of workgroup memory, with "
    "what the kernel itself declares";
static const char unknown[] = "a block may have no more threads than the kernel was compiled for "
                              "(known_block_size of gpu.func) and never more than 1024, the "
                              "workgroup memory must fit, with what the kernel itself declares, "
                              "and NVIDIA takes at most 2^31 - 1 x 65,535 x 65,535 blocks";

#define SIZES(launch)                                                                              \
    (long)(launch)->grid[0], (long)(launch)->grid[1], (long)(launch)->grid[2],                     \
        (long)(launch)->block[0], (long)(launch)->block[1], (long)(launch)->block[2]
#define CUT_SIZES(launch)                                                                          \
    (unsigned)(launch)->grid[0], (unsigned)(launch)->grid[1], (unsigned)(launch)->grid[2],         \
        (unsigned)(launch)->block[0], (unsigned)(launch)->block[1], (unsigned)(launch)->block[2]

void launch_report_cut(const struct launch *launch) {
    if (launch_is_cut(launch))
        report_not_made(hipErrorInvalidValue, &cut, SIZES(launch), CUT_SIZES(launch));
}

/* ---- the limits ---- */

/* A kernel, as far as the library knows it. */
struct kernel {
    char name[256];
    uint64_t most_threads; /* of a block; 0: unknown */
};

static uint64_t threads_of(const struct image *image, const char *name) {
    struct rest rest = metadata_in(image);
    struct metadata_kernel kernel;
    while (metadata_next_kernel(&rest, &kernel))
        if (kernel.length == strlen(name) && memcmp(kernel.name, name, kernel.length) == 0)
            return kernel.most_threads;
    return 0;
}

static void find_kernel(hipFunction_t handle, struct kernel *kernel) {
    struct module *module;
    pthread_mutex_lock(&tables_lock);
    const struct function *function = handle ? module_search(handle, &module) : NULL;
    if (function) {
        snprintf(kernel->name, sizeof kernel->name, "%s", function->name);
        kernel->most_threads = threads_of(&module->image, function->name);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Returns the limit that a launch exceeds, or the other limits if it keeps those that are known. */
static const char *exceeded_limit(const struct launch *launch) {
    enum { LEAST_MEMORY = 64 << 10 };
    for (int axis = 0; axis < 3; axis++)
        if (launch->grid[axis] < 1 || launch->block[axis] < 1)
            return too_small;
    for (int axis = 0; axis < 3; axis++)
        if ((uint64_t)launch->grid[axis] * (uint64_t)launch->block[axis] > UINT32_MAX)
            return too_large;
    return launch->smem > LEAST_MEMORY ? too_much_memory : unknown;
}

void launch_report(const char *expression, hipError_t error, const struct launch *launch) {
    const intptr_t *block = launch->block;
    const uint64_t threads = (uint64_t)block[0] * (uint64_t)block[1] * (uint64_t)block[2];
    struct kernel kernel = {.name = ""};
    find_kernel(launch->function, &kernel);
    const char *limit = exceeded_limit(launch);
    if (launch_is_cut(launch) && limit != too_small)
        report_failure(expression, error, &cut, SIZES(launch), CUT_SIZES(launch));
    else if (kernel.most_threads && threads > kernel.most_threads)
        report_failure(expression, error, &block_too_large, (long)block[0], (long)block[1],
                       (long)block[2], (long)kernel.most_threads, kernel.name,
                       threads > 1024 ? no_larger : larger);
    else
        report_failure(expression, error, &bad_launch, SIZES(launch), (unsigned)launch->smem,
                       limit);
}
