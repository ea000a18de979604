/* Checks the order of launches, streams and events, and reports calls with a wrong handle. */
#include "calls.h"
#include "foreign.h"
#include "launch.h"

static struct {
    void *(*stream_create)(void);
    void (*stream_destroy)(void *);
    void (*stream_synchronize)(void *);
    void (*stream_wait)(void *, void *);
    void *(*event_create)(void);
    void (*event_destroy)(void *);
    void (*event_synchronize)(void *);
    void (*event_record)(void *, void *);
    void (*launch)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, int32_t,
                   void *, void **, void **, size_t);
    void (*launch_symbol)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                          int32_t, void *, void **, void **, size_t);
    void (*launch_cooperative)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                               intptr_t, intptr_t, intptr_t, int32_t, void *, void **, void **);
    void (*launch_cluster)(void *, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                           intptr_t, intptr_t, intptr_t, int32_t, void *, void **, void **, size_t);
} native;

/* ---- reports ---- */

void softgpu_report_object(const char *kind, const char *call, const char *what,
                           const struct softgpu_object *object, const struct softgpu_place *place) {
    struct softgpu_report report;
    const uint64_t key[] = {(uintptr_t)kind, (uintptr_t)what,
                            place->count ? (uintptr_t)place->frames[0] : 0};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, kind);
    softgpu_report_text(&report, "call", call);
    softgpu_report_place(&report, "place", place);
    softgpu_report_text(&report, "object", what);
    softgpu_report_number(&report, "number", object->number);
    softgpu_report_place(&report, "made", &object->made);
    softgpu_report_place(&report, "ended", &object->ended);
    if (object->before) {
        softgpu_report_number(&report, "before", object->before);
        softgpu_report_place(&report, "ended_before", &object->ended_before);
    }
    if (object->earlier > 1) {
        softgpu_report_number(&report, "earlier", object->earlier);
        softgpu_report_number(&report, "first", object->first);
        softgpu_report_place(&report, "ended_first", &object->ended_first);
    }
    softgpu_report_end(&report);
}

void softgpu_check_stream(const char *call, void *stream, const struct softgpu_place *place) {
    struct softgpu_object object = softgpu_stream_find(stream);
    if (stream && object.state == SOFTGPU_DESTROYED)
        softgpu_report_object("use-after-destroy", call, "stream", &object, place);
}

/* A call gets one of these as an event. */
enum given { GIVEN_EVENT, GIVEN_STREAM, GIVEN_WRONG };

/* Reports a handle that the call must not get. `waits` is true if the call waits for the event, and
 * false if the call records or destroys the event. mgpu_rt waits for a stream in place of the event
 * and destroys it; LLVM's own library does not. MLIR's gpu.wait makes both calls, which are one
 * fault. */
static enum given check_event(const char *call, void *event, bool waits,
                              const struct softgpu_place *place) {
    struct softgpu_object object = softgpu_event_find(event), stream = softgpu_stream_find(event);
    const bool is_event = object.state == SOFTGPU_KNOWN;
    if (!is_event && stream.state == SOFTGPU_KNOWN) {
        static _Thread_local void *waited;
        if (waits || waited != event)
            softgpu_report_object("stream-as-event", call, "stream", &stream, place);
        waited = waits ? event : NULL;
        return GIVEN_STREAM;
    }
    if (object.state == SOFTGPU_DESTROYED)
        softgpu_report_object("use-after-destroy", call, "event", &object, place);
    else if (!is_event && stream.state == SOFTGPU_DESTROYED)
        softgpu_report_object("use-after-destroy", call, "stream", &stream, place);
    else if (is_event && waits && !object.recorded)
        softgpu_report_object("unrecorded-event", call, "event", &object, place);
    else
        return GIVEN_EVENT;
    return GIVEN_WRONG;
}

/* ---- streams ---- */

static void *stream_create(void) {
    static bool told;
    struct softgpu_place place = softgpu_call_begins();
    void *stream = native.stream_create();
    if (stream && !softgpu_stream_made(stream, &place) &&
        !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {
        const struct softgpu_object object = softgpu_stream_find(stream);
        softgpu_report_object("crowded", "mgpuStreamCreate", "stream", &object, &place);
    }
    return stream;
}

static void stream_destroy(void *stream) {
    struct softgpu_place place = softgpu_call_begins();
    softgpu_check_stream("mgpuStreamDestroy", stream, &place);
    softgpu_stream_ends(stream, &place); /* before HIP may reuse the handle */
    native.stream_destroy(stream);
}

static void stream_synchronize(void *stream) {
    struct softgpu_place place = softgpu_call_begins();
    struct softgpu_clock clock;
    softgpu_check_stream("mgpuStreamSynchronize", stream, &place);
    softgpu_clock_of_stream(stream, &clock);
    native.stream_synchronize(stream);
    softgpu_host_waited(&clock);
}

static void stream_wait(void *stream, void *event) {
    struct softgpu_place place = softgpu_call_begins();
    softgpu_check_stream("mgpuStreamWaitEvent", stream, &place);
    check_event("mgpuStreamWaitEvent", event, true, &place);
    softgpu_stream_waits(stream, event);
    native.stream_wait(stream, event);
}

/* ---- events ---- */

static void *event_create(void) {
    struct softgpu_place place = softgpu_call_begins();
    void *event = native.event_create();
    if (event)
        softgpu_event_made(event, &place);
    return event;
}

static void event_destroy(void *event) {
    struct softgpu_place place = softgpu_call_begins();
    if (check_event("mgpuEventDestroy", event, false, &place) == GIVEN_STREAM)
        softgpu_stream_ends(event, &place);
    else
        softgpu_event_ends(event, &place);
    native.event_destroy(event);
}

static void event_synchronize(void *event) {
    struct softgpu_place place = softgpu_call_begins();
    struct softgpu_clock clock;
    const enum given given = check_event("mgpuEventSynchronize", event, true, &place);
    if (given == GIVEN_STREAM)
        softgpu_clock_of_stream(event, &clock);
    else
        softgpu_clock_of_event(event, &clock);
    native.event_synchronize(event);
    if (given != GIVEN_WRONG)
        softgpu_host_waited(&clock);
}

static void event_record(void *event, void *stream) {
    struct softgpu_place place = softgpu_call_begins();
    softgpu_check_stream("mgpuEventRecord", stream, &place);
    check_event("mgpuEventRecord", event, false, &place);
    softgpu_event_recorded(event, stream);
    native.event_record(event, stream);
}

/* ---- launches ---- */

static void launch_begins(const char *call, void *stream) {
    struct softgpu_place place = softgpu_call_begins();
    struct softgpu_clock clock;
    softgpu_check_stream(call, stream, &place);
    softgpu_launch_called(softgpu_order_begin(SOFTGPU_OP_LAUNCH, stream, &place, &clock), &clock);
}

static void launch_ends(void) {
    softgpu_launch_await();
    softgpu_order_end();
    softgpu_foreign_watch();
}

static void launch(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                   intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t lds, void *stream,
                   void **params, void **extra, size_t count) {
    launch_begins("mgpuLaunchKernel", stream);
    native.launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds, stream, params,
                  extra, count);
    launch_ends();
}

static void launch_symbol(void *symbol, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                          intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t lds,
                          void *stream, void **params, void **extra, size_t count) {
    launch_begins("mgpuLaunchKernelRT", stream);
    native.launch_symbol(symbol, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds, stream,
                         params, extra, count);
    launch_ends();
}

static void launch_cooperative(void *function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                               intptr_t cluster_x, intptr_t cluster_y, intptr_t cluster_z,
                               intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t lds,
                               void *stream, void **params, void **extra) {
    launch_begins("mgpuLaunchKernelCooperative", stream);
    native.launch_cooperative(function, grid_x, grid_y, grid_z, cluster_x, cluster_y, cluster_z,
                              block_x, block_y, block_z, lds, stream, params, extra);
    launch_ends();
}

static void launch_cluster(void *function, intptr_t cluster_x, intptr_t cluster_y,
                           intptr_t cluster_z, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                           intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t lds,
                           void *stream, void **params, void **extra, size_t count) {
    launch_begins("mgpuLaunchClusterKernel", stream);
    native.launch_cluster(function, cluster_x, cluster_y, cluster_z, grid_x, grid_y, grid_z,
                          block_x, block_y, block_z, lds, stream, params, extra, count);
    launch_ends();
}

const struct softgpu_call softgpu_stream_calls[] = {
    {"mgpuStreamCreate", &native.stream_create, (softgpu_function)stream_create},
    {"mgpuStreamDestroy", &native.stream_destroy, (softgpu_function)stream_destroy},
    {"mgpuStreamSynchronize", &native.stream_synchronize, (softgpu_function)stream_synchronize},
    {"mgpuStreamWaitEvent", &native.stream_wait, (softgpu_function)stream_wait},
    {"mgpuEventCreate", &native.event_create, (softgpu_function)event_create},
    {"mgpuEventDestroy", &native.event_destroy, (softgpu_function)event_destroy},
    {"mgpuEventSynchronize", &native.event_synchronize, (softgpu_function)event_synchronize},
    {"mgpuEventRecord", &native.event_record, (softgpu_function)event_record},
    {"mgpuLaunchKernel", &native.launch, (softgpu_function)launch},
    {"mgpuLaunchKernelRT", &native.launch_symbol, (softgpu_function)launch_symbol},
    {"mgpuLaunchKernelCooperative", &native.launch_cooperative,
     (softgpu_function)launch_cooperative},
    {"mgpuLaunchClusterKernel", &native.launch_cluster, (softgpu_function)launch_cluster},
    {NULL, NULL, NULL},
};
