/* The library under the explorer: what has to hold of its numbers, and the functions of the library
 * and of the system that stand-ins replace. */
#include "model.h"

#include "shared/caches.h"
#include "streams/streams.h"

#include <string.h>
#include <time.h>

/* ---- what has to hold ---- */

void model_returned(unsigned stream) {
    const struct stream *known = handle_find(&stream_map, model_stream(stream));
    if (world.streams[stream].returned == MOST_WORKS)
        explore_fail("the explorer has room for no more operations");
    const bool counted = known && !stream_is_gone(known) && device_has_caches(0);
    world.streams[stream].numbers[world.streams[stream].returned++] =
        counted ? known->submitted : 0;
}

void model_check_numbers(void) {
    for (unsigned i = 0; i < MOST_STREAMS; i++) {
        const struct stream *stream = handle_find(&stream_map, model_stream(i));
        if (!stream)
            continue;
        explore_require(stream_is_gone(stream) || !device_has_caches(0) ||
                            !stream_is_idle(stream) ||
                            world.streams[i].done >= world.streams[i].returned,
                        "a stream is called idle that is at work");
        explore_require(stream->completed <= stream->submitted, "what is completed was submitted");
        for (unsigned work = 0; work < world.streams[i].returned && !world.forgot; work++)
            explore_require(!world.streams[i].numbers[work] ||
                                !stream_fence_done(stream, world.streams[i].numbers[work]) ||
                                world.streams[i].done > work,
                            "an operation counts as done before it is done");
    }
}

/* ---- stand-ins ---- */

/* A program whose calls are valid must not cause a failure. */
void __wrap_report_failure(const char *expression, hipError_t error, void *advice, ...) {
    (void)error;
    (void)advice;
    explore_fail(expression);
}

/* The time is a part of no state. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    memset(time, 0, sizeof *time);
    return 0;
}

/* The library asks about a stream only while no other thread has called it. Here the other threads
 * make their first call during the question. */
bool __wrap_thread_is_alone(void) {
    return true;
}

/* step_aside: a thread that waits for another one need not sleep. */
long __wrap_syscall(long number, ...) {
    (void)number;
    return 0;
}

void __wrap_report_once(void *advice, ...) {
    (void)advice;
}

/* The host cannot read the device's memory. */
bool __wrap_device_shares_memory(int device) {
    return device != 0;
}
