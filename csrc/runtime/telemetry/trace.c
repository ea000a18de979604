#include "telemetry/trace.h"
#include "process/mapped.h"
#include "telemetry/keys.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct trace *trace_now;

static __thread uint32_t known_thread __attribute__((tls_model("initial-exec")));

static uint32_t this_thread(void) {
    if (!known_thread)
        known_thread = (uint32_t)syscall(SYS_gettid);
    return known_thread;
}

void trace_add(const struct trace_event *event) {
    struct trace *trace = trace_now;
    const uint64_t number = fetch_add_relaxed(&trace->next, 1);
    struct trace_event *place = &trace->events[number % TRACE_EVENTS];
    const uint32_t thread = this_thread();
    store_release(&place->number, 0);
    fence_release();
    memcpy(&place->begin, &event->begin, sizeof *place - offsetof(struct trace_event, begin));
    place->thread = thread;
    store_release(&place->number, number + 1);
}

uint16_t trace_place(const void *address) {
    struct trace *trace = trace_now;
    bool fresh = false;
    const size_t row =
        address ? key_enter(trace->place_keys, PLACES, (uintptr_t)address, &fresh) : PLACES;
    if (fresh)
        trace->places[row].offset = mapped_place(address, trace->places[row].file, PLACE_FILE);
    return row < PLACES ? (uint16_t)(row + 1) : 0;
}

void trace_into(struct trace *trace) {
    known_thread = 0;
    trace_now = trace;
}
