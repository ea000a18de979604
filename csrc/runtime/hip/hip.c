#include "hip/hip.h"
#include "base/counters.h"
#include "base/trace.h"

#include <stdio.h>
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

/* As long as no library says them. */
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

const char *hip_error_text(hipError_t error, char text[HIP_ERROR_TEXT]) {
    const char *known = error_name(error), *name = known ? known : hip.GetErrorName(error);
    if (name)
        snprintf(text, HIP_ERROR_TEXT, "%s", name);
    else
        snprintf(text, HIP_ERROR_TEXT, "error %d", error);
    return text;
}

/* ---- timing ---- */

struct hip_functions hip_untimed;

static void note_call(enum hip_index function, uint64_t begin, hipError_t error) {
    const uint64_t nanoseconds = stats_now() - begin;
    stats_hip_call(function, nanoseconds);
    if (trace_on())
        trace_add(&(struct trace_event){.kind = TRACE_DRIVER,
                                        .function = (uint16_t)function,
                                        .begin = begin,
                                        .nanoseconds = nanoseconds,
                                        .error = (uint16_t)error});
}

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t timed_##name params {                                                        \
        const uint64_t begin = stats_now();                                                        \
        const hipError_t error = hip_untimed.name args;                                            \
        note_call(HIP_##name, begin, error);                                                       \
        return error;                                                                              \
    }
#include "base/hip.def"
#undef HIP_FN

void hip_time_calls(void) {
    hip_untimed = hip;
#define HIP_FN(need, name, params, args) hip.name = timed_##name;
#include "base/hip.def"
#undef HIP_FN
}
