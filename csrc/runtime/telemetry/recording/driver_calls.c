/* Counts and times this library's calls to HIP. */
#include "driver/hip.h"
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

/* AMD's HIP starts the device when it creates the first stream, which then takes up to 0.4 s. */
static bool starts_device(enum hip_index function) {
    static bool started;
    return function == HIP_StreamCreate && !exchange_relaxed(&started, true);
}

static void note_call(enum hip_index function, uint64_t begin, hipError_t error) {
    uint64_t nanoseconds = clock_ns() - begin;
    if (UNLIKELY(starts_device(function))) {
        recorder_start(begin, nanoseconds);
        begin += nanoseconds;
        nanoseconds = 0;
    }
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

void driver_calls_watch(void) {
#define HIP_FN(need, name, params, args)                                                           \
    if (hip.name != hip_missing.name)                                                              \
        hip.name = timed_##name;
#include "driver/hip.def"
}
