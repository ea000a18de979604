/* Counts and times this library's calls to HIP. */
#include "driver/hip.h"
#include "telemetry/recording/recorder.h"
#include "telemetry/trace.h"

/* AMD's HIP starts the device when it creates the first stream, which then takes up to 0.4 s. Other
 * threads that create a stream wait for that. Moves *begin behind the start of the device. */
static void leave_out_start(uint64_t *begin, uint64_t end) {
    static uint64_t started; /* when the device had started; 0: not yet */
    uint64_t before = 0;
    if (cas_acq_rel(&started, &before, end)) {
        recorder_start(*begin, end - *begin);
        *begin = end;
    } else if (*begin < before) {
        const uint64_t ready = before < end ? before : end;
        call_now.begin += ready - *begin;
        *begin = ready;
    }
}

static void note_call(enum hip_index function, uint64_t begin, hipError_t error) {
    const uint64_t end = clock_ns();
    if (function == HIP_StreamCreate)
        leave_out_start(&begin, end);
    const uint64_t nanoseconds = end - begin;
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
