#include "driver/hip.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static char installed_path[4096];
static void *installed; /* NULL: no library is installed */
int hip_device_count = 1;
bool hip_no_device;
int hip_version;
struct hip_functions hip_untimed;
struct cuda_functions cuda;

/* ---- functions that are missing: all of them without a library, or without a device ---- */

static hipError_t missing_error = hipErrorSharedObjectInitFailed;

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t missing_##name params {                                                      \
        return missing_error;                                                                      \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "driver/hip.def"
#pragma GCC diagnostic pop

const struct hip_functions hip_missing = {
#define HIP_FN(need, name, params, args) .name = missing_##name,
#include "driver/hip.def"
};

/* Names errors while no HIP library is open. */
static const char *error_name(hipError_t error) {
    switch (error) {
#define HIP_ERROR(number, name)                                                                    \
    case number:                                                                                   \
        return #name;
#include "../../hip_errors.def"
    default:
        return NULL;
    }
}

struct hip_functions hip = {
#define HIP_FN(need, name, params, args) .name = missing_##name,
#include "driver/hip.def"
    .GetErrorName = error_name,
};

/* ---- the library ---- */

void hip_install(const struct hip_library *library) {
    memcpy(installed_path, library->path, sizeof installed_path);
    installed = library->handle;
    missing_error = hipErrorNotSupported;
    hip = library->functions;
    cuda = library->cuda;
}

void hip_install_without_device(const struct hip_library *library) {
    memcpy(installed_path, library->path, sizeof installed_path);
    missing_error = hipErrorNoDevice;
    hip.GetErrorName = library->functions.GetErrorName;
}

const char *hip_path(void) {
    return installed_path;
}

void *hip_symbol(const char *name) {
    return installed ? dlsym(installed, name) : NULL;
}

const char *hip_error_text(hipError_t error, char text[HIP_ERROR_TEXT]) {
    const char *known = error_name(error), *name = known ? known : hip.GetErrorName(error);
    if (name)
        snprintf(text, HIP_ERROR_TEXT, "%s", name);
    else
        snprintf(text, HIP_ERROR_TEXT, "error %d", error);
    return text;
}
