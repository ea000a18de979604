/* Finds out whether the driver refused an image because it is for another GPU, or has another
 * version. `mgpu-rt inspect` knows further reasons. */
#include "driver/device.h"
#include "driver/report.h"
#include "modules/image/metadata.h"
#include "modules/modules.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* AMDGPU_HSA is a value of EI_OSABI. ABI_TO_VERSION is the version of a code object minus its
 * EI_ABIVERSION. */
enum { AMDGPU_HSA = 64, ABI_TO_VERSION = 2 };
enum { TARGETS = 256 };

static struct advice refused = {.text = "%s refused the image at %p%s%s%s%s. %s",
                                .leads_to = NULL_MODULE | NULL_FUNCTION};

/* HIP takes the versions of code objects from OLDEST to newest_version(). Tests with HIP 5.2.3,
 * 5.7.1, 6.4.3 and 7.2.4 have shown which versions HIP accepts. */
enum { OLDEST = 4 };
static const char *const versions_to[] = {[4] = "4", [5] = "4 and 5", [6] = "4 to 6"};

static int newest_version(void) {
    return hip_version >= HIP_6_4 ? 6 : hip_version >= HIP_5_7 ? 5 : 4;
}

/* Returns the version of a code object; 0: unknown. */
static int version_of(const struct image *image) {
    const bool known =
        image->kind == IMAGE_ELF && image->size && image->bytes[EI_OSABI] == AMDGPU_HSA;
    return known ? image->bytes[EI_ABIVERSION] + ABI_TO_VERSION : 0;
}

static bool is_of_other_version(const struct image *image) {
    const int version = version_of(image);
    return version && hip_version && (version < OLDEST || version > newest_version());
}

/* Returns whether a target ("gfx90a:xnack+") fits a device ("gfx90a:sramecc+:xnack-"): the target
 * names no feature that the device has the other way round. */
static bool fits(const char *target, const char *device) {
    const size_t chip = strcspn(device, ":");
    char opposite[32];
    if (strcspn(target, ":,") != chip || strncmp(target, device, chip) != 0)
        return false;
    for (const char *name = target + chip; *name == ':'; name += 1 + strcspn(name + 1, ":,")) {
        const int length = (int)strcspn(name, "+-,");
        snprintf(opposite, sizeof opposite, "%.*s%c", length, name,
                 name[length] == '+' ? '-' : '+');
        if (strstr(device, opposite))
            return false;
    }
    return true;
}

/* Returns true if an image does not fit the device. A generic target stands for several
 * processors. */
static bool is_for_another(const char *targets, const char *device) {
    for (const char *target = targets; (target = strstr(target, "gfx")); target += 3)
        if (fits(target, device))
            return false;
    return targets[0] && device[0] && !strstr(targets, "generic");
}

bool image_suits_device(const struct image *image, int device) {
    char targets[TARGETS], gpu[DEVICE_TARGET];
    if (!image->size || cuda_present())
        return false;
    metadata_targets(image, targets, sizeof targets);
    device_target(device, gpu);
    return targets[0] && gpu[0] && !is_for_another(targets, gpu) && !is_of_other_version(image);
}

/* Writes what the user can do. */
static void write_way_out(const struct image *image, const char *targets, const char *gpu,
                          char *text, size_t size) {
    const int chip = (int)strcspn(gpu, ":");
    if (is_of_other_version(image))
        snprintf(text, size,
                 "The code object has version %d, but this HIP takes version %s (abi=%d00 of "
                 "rocdl-attach-target)",
                 version_of(image), versions_to[newest_version()], newest_version());
    else if (gpu[0] && (image->machine == MACHINE_CUDA || is_for_another(targets, gpu)))
        snprintf(text, size,
                 "Compile the image for this GPU: mgpu-rt lower --chip %.*s, or chip=%.*s of "
                 "rocdl-attach-target",
                 chip, gpu, chip, gpu);
    else if (image->kind == IMAGE_ELF && image->machine != MACHINE_AMDGPU &&
             image->machine != MACHINE_CUDA)
        snprintf(text, size,
                 "It is an ELF file for a processor, such as an object file: `mgpu-rt lower --emit "
                 "image` writes an image");
    else
        snprintf(text, size, "`mgpu-rt inspect PROGRAM` tells more about the program's images%s",
                 cuda_present() ? ", with --device cuda" : "");
}

void advise_image(const char *expression, hipError_t error, const struct image *image, int device) {
    char targets[TARGETS] = "", gpu[DEVICE_TARGET] = "", way_out[512] = "";
    if (error == hipErrorInvalidDevice || error == hipErrorNoDevice) {
        report_failure(expression, error, &report_no_device);
        return;
    }
    if (!load_relaxed(&refused.given)) { /* device_target starts a thread */
        metadata_targets(image, targets, sizeof targets);
        if (!cuda_present())
            device_target(device, gpu);
        write_way_out(image, targets, gpu, way_out, sizeof way_out);
    }
    report_failure(expression, error, &refused, cuda_present() ? "NVIDIA's driver" : "HIP",
                   (const void *)image->bytes, targets[0] ? ", for " : "", targets,
                   gpu[0] ? ", on " : "", gpu, way_out);
}
