#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
    .cache_on = true, .device_number = -1, .module_limit_count = 256, .stream_limit_count = 32};

/* An option that makes no sense: says so, with what is done instead. */
static void complain(const char *variable, const char *value, const char *problem) {
    fprintf(stderr, "mgpu_rt: %s='%s' %s\n", variable, value, problem);
}

static const char *or_default(const char *variable, const char *fallback) {
    const char *value = getenv(variable);
    return value && value[0] ? value : fallback;
}

/* The number in `text`, or `fallback` with a message. */
static long number(const char *variable, const char *text, long fallback, const char *problem) {
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && value >= 0 && value <= 1 << 30)
        return value;
    complain(variable, text, problem);
    return fallback;
}

static const char default_limit[] = "is not a number from 0 on: the default is used";
static const char default_device[] = "is not a number from 0 on: HIP's default device is used";

/* Open MPI, Intel MPI and MPICH, MVAPICH, Slurm. */
static int local_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return (int)number(variables[i], value, -1, default_device);
    }
    complain("MGPU_RT_DEVICE", "local-rank",
             "but no launcher has set a local rank (OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, "
             "MV2_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID): HIP's default device is used");
    return -1;
}

void options_read(struct options *out) {
#define OPTION(field, variable, default_value, meaning)                                            \
    out->field = or_default(variable, default_value);
#include "options.def"
#undef OPTION
    out->cache_on = strcmp(out->cache, "off") != 0;
    if (out->cache_on && strcmp(out->cache, "on") != 0)
        complain("MGPU_RT_CACHE", out->cache, "is neither on nor off: on is used");
    if (strcmp(out->hip_symbols, "auto") != 0 && strcmp(out->hip_symbols, "own") != 0 &&
        strcmp(out->hip_symbols, "shared") != 0) {
        complain("MGPU_RT_HIP_SYMBOLS", out->hip_symbols,
                 "is none of auto, own and shared: auto is used");
        out->hip_symbols = "auto";
    }
    out->verbose_on = strcmp(out->verbose, "0") != 0;
    out->module_limit_count = number("MGPU_RT_MODULE_LIMIT", out->module_limit, 256, default_limit);
    out->stream_limit_count = number("MGPU_RT_STREAM_LIMIT", out->stream_limit, 32, default_limit);
    out->device_number = -1;
    if (strcmp(out->device, "local-rank") == 0)
        out->device_number = local_rank();
    else if (out->device[0])
        out->device_number = (int)number("MGPU_RT_DEVICE", out->device, -1, default_device);
}
