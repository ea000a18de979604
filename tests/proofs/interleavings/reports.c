/* HIP's reports of calls, in the model. */
#include "model.h"

#include "telemetry/counters.h"

void model_report(unsigned function) {
    if (world.hear)
        world.hear(3, function + 1, NULL);
}

static void set_tracer(int (*hear)(int domain, uint32_t operation, void *data)) {
    world.hear = hear;
}

static const char *api_name(uint32_t operation) {
    static const char *const functions[] = {
#define HIP_FN(need, name, params, args) [HIP_##name] = "hip" #name,
#include "driver/hip.def"
    };
    return operation && operation <= sizeof functions / sizeof *functions ? functions[operation - 1]
                                                                          : NULL;
}

static int rocr_has_not_started(int attribute, void *value) {
    (void)attribute, (void)value;
    return 0x100b;
}

const struct witness_functions model_reports = {
    .set_tracer = set_tracer, .name = api_name, .ask_rocr = rocr_has_not_started};

static struct hip_functions silent;

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t reported_##name params {                                                     \
        model_report(HIP_##name);                                                                  \
        return silent.name args;                                                                   \
    }
#include "driver/hip.def"

void model_report_calls(void) {
    silent = hip;
#define HIP_FN(need, name, params, args)                                                           \
    if (hip.name)                                                                                  \
        hip.name = reported_##name;
#include "driver/hip.def"
}

void model_other_code_allocates(void) {
    model_report(HIP_Malloc);
    explore_point();
}
