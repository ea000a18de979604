#include "telemetry/recording/driver_calls.h"
#include "driver/hip.h"
#include "driver/hip_open.h"
#include "proof.h"
#include "telemetry/counters.h"
#include "telemetry/recording/gpu_times.h"
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

static void note_call(enum hip_index function, uint64_t begin, hipError_t error) {
    const uint64_t nanoseconds = clock_ns() - begin;
    stats_call(&counts.hip[function], nanoseconds);
    if (trace_on())
        trace_add(&(struct trace_event){.kind = TRACE_DRIVER,
                                        .function = (uint16_t)function,
                                        .begin = begin,
                                        .nanoseconds = nanoseconds,
                                        .error = (uint16_t)error});
}

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t timed_##name params {                                                        \
        const uint64_t begin = clock_ns();                                                         \
        const hipError_t error = hip_untimed.name args;                                            \
        note_call(HIP_##name, begin, error);                                                       \
        return error;                                                                              \
    }
#include "driver/hip.def"
#undef HIP_FN

#define SUBMISSION(name, params, args, kernel, bytes)                                              \
    static hipError_t submitted_##name params {                                                    \
        struct work *work = gpu_times_before(HIP_##name, stream, kernel, bytes);                   \
        return gpu_times_after(work, stream, timed_##name args);                                   \
    }
#include "telemetry/recording/gpu_times.def"
#undef SUBMISSION

void driver_calls_watch(bool gpu) {
    hip_untimed = hip;
#define HIP_FN(need, name, params, args) hip.name = timed_##name;
#include "driver/hip.def"
#undef HIP_FN
    if (!gpu)
        return;
/* A function that HIP lacks submits nothing, and does not change the last error. */
#define SUBMISSION(name, params, args, kernel, bytes)                                              \
    if (PROOF(hip_has_the_timed_function, hip_untimed.name != hip_missing.name))                   \
        hip.name = submitted_##name;
#include "telemetry/recording/gpu_times.def"
#undef SUBMISSION
}
