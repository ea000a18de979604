/* mgpuEvent*. */
#include "../setting.h"

SITUATION(event_create_miss) {
    hipEvent_t first = mgpuEventCreate(), second;
    CALL(second = mgpuEventCreate());
    mgpuEventDestroy(first);
    mgpuEventDestroy(second);
}

SITUATION(event_destroy) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventDestroy(event));
}

SITUATION(event_destroy_null) {
    CALL(mgpuEventDestroy(NULL));
}

SITUATION(event_destroy_twice) {
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventDestroy(event));
}

SITUATION(event_destroy_unknown) {
    CALL(mgpuEventDestroy(UNKNOWN(hipEvent_t)));
}

SITUATION(event_destroy_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventDestroy((hipEvent_t)stream));
}

SITUATION(event_synchronize) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    launch(kernel(), 1, 1, 0, stream);
    mgpuEventRecord(event, stream);
    CALL(mgpuEventSynchronize(event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(event_synchronize_never_recorded) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventSynchronize(event));
    mgpuEventDestroy(event);
}

SITUATION(event_synchronize_null) {
    CALL(mgpuEventSynchronize(NULL));
}

SITUATION(event_synchronize_destroyed) {
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventSynchronize(event));
}

SITUATION(event_synchronize_unknown) {
    CALL(mgpuEventSynchronize(UNKNOWN(hipEvent_t)));
}

SITUATION(event_synchronize_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventSynchronize((hipEvent_t)stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventRecord(event, stream));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(record_without_a_stream) {
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuEventRecord(event, NULL));
    mgpuEventDestroy(event);
}

SITUATION(record_null) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventRecord(NULL, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_destroyed) {
    hipStream_t stream = stream_new();
    hipEvent_t event = event_destroyed();
    CALL(mgpuEventRecord(event, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuEventRecord((hipEvent_t)stream, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(record_on_a_destroyed_stream) {
    hipEvent_t event = mgpuEventCreate();
    hipStream_t stream = stream_destroyed();
    CALL(mgpuEventRecord(event, stream));
    mgpuEventDestroy(event);
}
