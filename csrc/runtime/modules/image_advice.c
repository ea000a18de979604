/* Finds out why the driver refused an image, as far as the image's bytes show the reason. */
#include "modules/image_advice.h"
#include "atomics.h"
#include "driver/cuda.h"
#include "driver/device.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "mgpu.h"
#include "modules/image/metadata.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* AMDGPU_HSA is a value of EI_OSABI. ABI_TO_VERSION is the version of a code object minus its
 * EI_ABIVERSION. */
enum { AMDGPU_HSA = 64, ABI_TO_VERSION = 2 };
enum { HIP_MAJOR = 10000000, HIP_MINOR = 100000 };

static struct advice refused_by_amd = {.text = "HIP%s refused the image at %p, which is %s%s%s. %s",
                                       .leads_to = NULL_MODULE | NULL_FUNCTION};
static struct advice refused_by_nvidia = {
    .text =
        "NVIDIA's driver refused the image at %p, which is %s. Compile the image for this GPU%s: "
        "nvidia-smi or `mgpu-rt doctor --device cuda` shows the GPU and the driver",
    .leads_to = NULL_MODULE | NULL_FUNCTION};
static const char definitions[] =
    "define that in the gpu.module, or link bitcode that does (l=FILE of rocdl-attach-target)";
static const char device_libraries[] =
    "AMD's device libraries do, which toolkit=/opt/rocm of gpu-module-to-binary links";
static const char ptx_too[] = ", for a version of PTX that this driver knows";
/* The versions of code objects that HIP's releases accept, and the MLIR option for each version.
 * Tests with HIP 5.2.3, 5.7.1, 6.4.3 and 7.2.4 have shown which versions HIP accepts. */
static const struct versions {
    int since, first, last;
    const char *text;
} versions[] = {
    {HIP_6_4, 4, 6, "4 to 6 (abi=400, 500 or 600 of rocdl-attach-target)"},
    {HIP_5_7, 4, 5, "4 and 5 (abi=400 or 500 of rocdl-attach-target)"},
    {0, 4, 4, "4 (abi=400 of rocdl-attach-target)"},
};

static const struct versions *versions_taken(void) {
    const struct versions *taken = versions;
    while (hip_version < taken->since)
        taken++;
    return taken;
}

/* Writes HIP's release as text, such as " 5.2". Writes an empty text if the release is unknown.
 * Returns the text. */
static const char *release_text(char *text, size_t size) {
    text[0] = '\0';
    if (hip_version > 0)
        snprintf(text, size, " %d.%d", hip_version / HIP_MAJOR,
                 hip_version % HIP_MAJOR / HIP_MINOR);
    return text;
}

enum { TARGET = 64, TARGETS = 256 };

static bool is_code_object(const struct image *image) {
    return image->kind == IMAGE_ELF && image->size && image->bytes[EI_OSABI] == AMDGPU_HSA;
}

static int version_of(const struct image *image) {
    return image->bytes[EI_ABIVERSION] + ABI_TO_VERSION;
}

/* Writes text such as "an AMDGPU code object for gfx90a", as far as the image's bytes show the kind
 * and the targets. Writes the image's targets to `targets`. */
static void describe(const struct image *image, char *text, size_t size, char targets[TARGETS]) {
    const char *chip;
    size_t length;
    image_bundle_targets(image, targets, TARGETS);
    if (is_code_object(image) && metadata_chip(image, &chip, &length) && length < TARGET)
        snprintf(targets, TARGETS, "%.*s", (int)length, chip);
    snprintf(text, size, "%s%s%s", image_kind_text(image), targets[0] ? " for " : "", targets);
}

/* Returns true if `targets`, a list such as "gfx906, gfx90a:xnack+", contains the processor whose
 * name is at the start of `device`. */
static bool lists_processor(const char *targets, const char *device) {
    const size_t length = strcspn(device, ":,");
    for (const char *at = targets; (at = strstr(at, "gfx")); at += 3)
        if (strcspn(at, ":,") == length && strncmp(at, device, length) == 0)
            return true;
    return false;
}

/* Returns true if an image fits none of the devices' processors. A generic target stands for
 * several processors. */
static bool is_for_others(const struct image *image, const char *targets, const char *devices) {
    if (image->machine == EM_CUDA)
        return devices[0];
    for (const char *device = strstr(devices, "gfx"); device; device = strstr(device + 3, "gfx"))
        if (lists_processor(targets, device))
            return false;
    return targets[0] && devices[0] && !strstr(targets, "generic");
}

/* A feature of a target, such as "xnack+", which the image and the device have differently. */
struct difference {
    char name[16], image, device; /* '+' or '-' */
};

/* Compares the features of two targets of one processor, such as "gfx90a:xnack+" and
 * "gfx90a:sramecc+:xnack-". A target without a feature fits both of its values. */
static bool differ(const char *target, const char *device, struct difference *found) {
    const size_t end = strcspn(target, ",");
    for (size_t at = strcspn(target, ":,"); at < end; at += 1 + strcspn(target + at + 1, ":,")) {
        const size_t length = strcspn(target + at + 1, "+-:,");
        const char *other = memmem(device, strcspn(device, ","), target + at, length + 1);
        found->image = target[at + 1 + length];
        found->device = other ? other[length + 1] : '\0';
        snprintf(found->name, sizeof found->name, "%.*s", (int)length, target + at + 1);
        if ((found->image == '+' && found->device == '-') ||
            (found->image == '-' && found->device == '+'))
            return true;
    }
    return false;
}

/* Returns true if each target of the image for a device's processor differs from the device in a
 * feature, and stores the last such feature. */
static bool has_other_features(const char *targets, const char *devices, struct difference *found) {
    bool any = false;
    for (const char *device = strstr(devices, "gfx"); device; device = strstr(device + 3, "gfx"))
        for (const char *at = strstr(targets, "gfx"); at; at = strstr(at + 3, "gfx")) {
            if (strcspn(at, ":,") != strcspn(device, ":,") ||
                strncmp(at, device, strcspn(at, ":,")) != 0)
                continue;
            if (!differ(at, device, found))
                return false;
            any = true;
        }
    return any;
}

/* Writes which feature differs, and the ways out. Only xnack can be changed at run time. */
static void explain_difference(const struct difference *found, char *text, size_t size) {
    const bool is_xnack = strcmp(found->name, "xnack") == 0;
    const char *way = found->image == '+' ? ", or set HSA_XNACK=1 if this GPU can retry page faults"
                                          : ", or set HSA_XNACK=0";
    snprintf(text, size,
             "The image is compiled with %s%c, but this GPU runs with %s%c: compile without "
             "features=%c%s of rocdl-attach-target%s",
             found->name, found->image, found->name, found->device, found->image, found->name,
             is_xnack ? way : "");
}

static bool is_of_other_version(const struct image *image) {
    const int version = is_code_object(image) ? version_of(image) : 0;
    return version && hip_version &&
           (version < versions_taken()->first || version > versions_taken()->last);
}

/* Writes why AMD's HIP refuses an image, as far as the image's bytes show the reason, and writes a
 * remedy. */
static void explain_refusal(const struct image *image, const char *targets, const char *devices,
                            char *text, size_t size) {
    char names[TARGETS];
    struct difference difference;
    const int processor = (int)strcspn(devices, ":,");
    if (is_of_other_version(image))
        snprintf(text, size, "The code object has version %d, but this HIP takes version %s",
                 version_of(image), versions_taken()->text);
    else if (is_for_others(image, targets, devices))
        snprintf(text, size,
                 "Compile the image for this GPU: mgpu-rt lower --chip %.*s, or chip=%.*s of "
                 "rocdl-attach-target",
                 processor, devices, processor, devices);
    else if (has_other_features(targets, devices, &difference))
        explain_difference(&difference, text, size);
    else if (image_undefined_names(image, names, sizeof names)[0])
        snprintf(text, size, "The image needs %s, which no code object defines: %s", names,
                 strstr(names, "'__oc") ? device_libraries : definitions);
    else if (image->kind == IMAGE_TEXT || image->kind == IMAGE_BITCODE)
        snprintf(text, size, "Lower with gpu-module-to-binary{format=bin}");
    else
        snprintf(text, size, "AMD_LOG_LEVEL=4 shows HIP's own reason");
}

bool image_suits_device(const struct image *image) {
    char what[TARGETS + 32], names[TARGET], targets[TARGETS], devices[TARGETS];
    if (!image->size || cuda_present())
        return false;
    describe(image, what, sizeof what, targets);
    device_targets(devices, sizeof devices);
    return targets[0] && devices[0] && !is_for_others(image, targets, devices) &&
           !is_of_other_version(image) && !image_undefined_names(image, names, sizeof names)[0];
}

static void advise_amd(const char *expression, hipError_t error, const struct image *image) {
    char what[TARGETS + 32], number[32], targets[TARGETS], devices[TARGETS] = "", why[768] = "";
    const void *data = image->bytes;
    describe(image, what, sizeof what, targets);
    if (!load_relaxed(&refused_by_amd.given)) { /* device_targets starts a thread, so the library
                                                 * calls it only for the first message */
        device_targets(devices, sizeof devices);
        explain_refusal(image, targets, devices, why, sizeof why);
    }
    report_failure(expression, error, &refused_by_amd, release_text(number, sizeof number), data,
                   what, devices[0] ? ", on " : "", devices, why);
}

void advise_image(const char *expression, hipError_t error, const struct image *image) {
    if (error == hipErrorInvalidDevice || error == hipErrorNoDevice)
        report_failure(expression, error, &report_no_device);
    else if (cuda_present())
        report_failure(expression, error, &refused_by_nvidia, (const void *)image->bytes,
                       image_kind_text(image), image->kind == IMAGE_PTX ? ptx_too : "");
    else
        advise_amd(expression, error, image);
}
