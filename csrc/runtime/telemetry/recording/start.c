#include "telemetry/recording/start.h"
#include "atomics.h"
#include "driver/hip.h"
#include "driver/witness.h"
#include "likely.h"
#include "shared/thread.h"
#include "telemetry/counters.h"
#include "telemetry/trace.h"

static struct start start;
static uint64_t initialised; /* time at which the initialisation began */
static bool device_known;

static void trace_start(uint64_t begin, uint64_t nanoseconds) {
    if (trace_on() && nanoseconds)
        trace_add(&(struct trace_event){.kind = TRACE_START,
                                        .begin = begin,
                                        .nanoseconds = nanoseconds,
                                        .kernel = TRACE_NO_KERNEL,
                                        .stream = TRACE_NO_STREAM});
}

void start_initialised(uint64_t begin, uint64_t nanoseconds, int version) {
    initialised = begin;
    start.nanoseconds = nanoseconds;
    start.version = version;
}

static void store_start(void) {
    counts.start = start;
    witness_record();
}

void start_record(void) {
    store_start();
    trace_start(initialised, start.nanoseconds);
}

/* NVIDIA's driver creates a device's context when hipFree(NULL) is called. AMD's HIP does most of
 * its start when it creates the first stream. In HIP 5.2.3 the first stream takes 0.4 s, and
 * hipInit takes 0.04 s. */
static hipError_t make_ready(void) {
    hipStream_t stream = NULL;
    hipError_t error = hip_untimed.Free(NULL);
    if (error == hipSuccess)
        error = hip_untimed.StreamCreate(&stream);
    return error == hipSuccess ? hip_untimed.StreamDestroy(stream) : error;
}

void start_device(void) {
    int device = 0;
    if (LIKELY(load_relaxed(&device_known)) || exchange_relaxed(&device_known, true))
        return;
    (void)thread_get(); /* thread_get also selects the device */
    const uint64_t begin = clock_ns();
    const hipError_t error = make_ready();
    const uint64_t nanoseconds = clock_ns() - begin;
    const hipError_t named = error == hipSuccess ? hip_untimed.GetDevice(&device) : error;
    if (named != hipSuccess ||
        hip_untimed.DeviceGetName(start.device, sizeof start.device - 1, device) != hipSuccess) {
        start.device[0] = '\0';
        (void)
            hip_untimed.GetLastError(); /* later calls of the program will return the same error */
    }
    start.nanoseconds += nanoseconds;
    store_start();
    trace_start(begin, nanoseconds);
}
