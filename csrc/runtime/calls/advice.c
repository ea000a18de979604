#include "calls/advice.h"
#include "base/abi.h"
#include "base/state.h"
#include "cache/modules.h"
#include "hip/cuda.h"
#include "hip/hip.h"
#include "hip/report.h"
#include "image/metadata.h"

#include <elf.h>
#include <stdio.h>

enum { AMDGPU_HSA = 64, ABI_TO_VERSION = 2 }; /* EI_OSABI; EI_ABIVERSION 2 is version 4 */
enum { HIP_MAJOR = 10000000, HIP_MINOR = 100000 };

static struct advice refused_by_amd = {
    .text = "HIP%s refused the image at %p, which is %s. It takes code objects of version %s, "
            "compiled for this GPU: rocminfo or `mgpu-rt doctor` names it",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice refused_by_nvidia = {
    .text = "NVIDIA's driver refused the image at %p, which is %s. Compile for this GPU and for a "
            "version of PTX that this driver knows (nvidia-smi or `mgpu-rt doctor --device cuda` "
            "names both)",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice block_too_large = {
    .text = "a block of %ld x %ld x %ld threads is more than the %ld that kernel '%s' was compiled "
            "for: say its size by gpu.known_block_size, or launch smaller blocks"};
static struct advice bad_launch = {
    .text = "grid %ld x %ld x %ld, block %ld x %ld x %ld, %d bytes of dynamic workgroup memory: "
            "each size must be at least 1, a block may have no more threads than the kernel was "
            "compiled for (gpu.known_block_size) and never more than 1024, and the memory must "
            "fit"};

/* ---- images ---- */

/* The versions of code objects that releases are known to take, and how to ask MLIR for them.
 * Measured with 5.2.3, 5.7.1, 6.4.3 and 7.2.4. */
static const char *versions_taken(void) {
    if (hip_version >= HIP_6_4)
        return "4 to 6 (abi=400, 500 or 600)";
    return hip_version >= HIP_5_7 ? "4 and 5 (abi=400 or 500)" : "4 (abi=400)";
}

/* " 5.2", or nothing. */
static const char *release_text(char *text, size_t size) {
    text[0] = '\0';
    if (hip_version > 0)
        snprintf(text, size, " %d.%d", hip_version / HIP_MAJOR,
                 hip_version % HIP_MAJOR / HIP_MINOR);
    return text;
}

/* "an AMDGPU code object of version 5 for gfx90a", as far as it can be told. */
static const char *words_for(const struct image *image, char *text, size_t size) {
    const char *chip, *kind = image_kind_text(image);
    size_t length;
    const bool code_object =
        image->kind == IMAGE_ELF && image->size && image->bytes[EI_OSABI] == AMDGPU_HSA;
    const int version = code_object ? image->bytes[EI_ABIVERSION] + ABI_TO_VERSION : 0;
    if (!code_object)
        return kind;
    if (metadata_chip(image, &chip, &length) && length < 64)
        snprintf(text, size, "%s of version %d for %.*s", kind, version, (int)length, chip);
    else
        snprintf(text, size, "%s of version %d", kind, version);
    return text;
}

void advise_image(const char *expression, hipError_t error, const struct image *image) {
    char words[128], number[32];
    const void *data = image->bytes;
    const char *what = words_for(image, words, sizeof words);
    if (error == hipErrorInvalidDevice || error == hipErrorNoDevice)
        report_failure(expression, error, &report_no_device);
    else if (cuda_present())
        report_failure(expression, error, &refused_by_nvidia, data, what);
    else
        report_failure(expression, error, &refused_by_amd, release_text(number, sizeof number),
                       data, what, versions_taken());
}

/* ---- launches ---- */

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
    if (kernel.block_limit && threads > kernel.block_limit)
        report_failure(expression, error, &block_too_large, (long)block[0], (long)block[1],
                       (long)block[2], (long)kernel.block_limit, kernel.name);
    else
        report_failure(expression, error, &bad_launch, (long)grid[0], (long)grid[1], (long)grid[2],
                       (long)block[0], (long)block[1], (long)block[2], launch->smem);
}
