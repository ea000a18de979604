#include "hip/hip.h"
#include "base/counters.h"

#include <string.h>

static char installed_path[4096];
int hip_device_count = 1;
bool hip_no_device;
int hip_version;

/* ---- before a library is there ---- */

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t absent_##name params {                                                       \
        return hipErrorSharedObjectInitFailed;                                                     \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "base/hip.def"
#pragma GCC diagnostic pop
#undef HIP_FN

static const char *error_name(hipError_t error) {
    switch (error) {
#define HIP_ERROR(number, name)                                                                    \
    case number:                                                                                   \
        return #name;
#include "../../hip_errors.def"
#undef HIP_ERROR
    default:
        return NULL;
    }
}

struct hip_functions hip = {
#define HIP_FN(need, name, params, args) .name = absent_##name,
#include "base/hip.def"
#undef HIP_FN
    .GetErrorName = error_name,
};

/* ---- the library ---- */

void hip_install(const struct hip_library *library) {
    memcpy(installed_path, library->path, sizeof installed_path);
    hip = library->functions;
}

const char *hip_path(void) {
    return installed_path;
}

/* ---- timing ---- */

static struct hip_functions untimed;

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t timed_##name params {                                                        \
        const uint64_t begin = stats_now();                                                        \
        const hipError_t error = untimed.name args;                                                \
        stats_hip_call(HIP_##name, stats_now() - begin);                                           \
        return error;                                                                              \
    }
#include "base/hip.def"
#undef HIP_FN

void hip_time_calls(void) {
    untimed = hip;
#define HIP_FN(need, name, params, args) hip.name = timed_##name;
#include "base/hip.def"
#undef HIP_FN
}
