#include "telemetry/recording/driver_calls.h"
#include "driver/hip.h"
#include "driver/hip_open.h"
#include "telemetry/counters.h"
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

void driver_calls_watch(void) {
    hip_untimed = hip;
#define HIP_FN(need, name, params, args) hip.name = timed_##name;
#include "driver/hip.def"
#undef HIP_FN
}
