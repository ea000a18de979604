/* mgpuStream*. */
#include "../setting.h"

SITUATION(stream_create_miss) {
    hipStream_t first = stream_new(), second;
    CALL(second = mgpuStreamCreate());
    mgpuStreamDestroy(first);
    mgpuStreamDestroy(second);
}

SITUATION(stream_create_hit) {
    hipStream_t stream = stream_destroyed();
    CALL(stream = mgpuStreamCreate());
    mgpuStreamDestroy(stream);
}

SITUATION(stream_create_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    mgpuStreamDestroy(stream);
    CALL(stream = mgpuStreamCreate());
    mgpuStreamDestroy(stream);
}

SITUATION(stream_destroy) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_not_the_last) {
    hipStream_t first = stream_new(), second = stream_new();
    CALL(mgpuStreamDestroy(first));
    mgpuStreamDestroy(second);
}

SITUATION(stream_destroy_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_null) {
    CALL(mgpuStreamDestroy(NULL));
}

SITUATION(stream_destroy_unknown) {
    CALL(mgpuStreamDestroy(UNKNOWN(hipStream_t)));
}

SITUATION(stream_destroy_twice) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamDestroy(stream));
}

/* HIP 7 does not check the handle of a destroyed stream, and uses the stream's freed memory. */
SITUATION(stream_destroy_after_hips) {
    hipStream_t stream = stream_new();
    int version = 0;
    HIP(hipRuntimeGetVersion, int *)(&version);
    HIP(hipStreamDestroy, hipStream_t)(stream);
    if (version < 70000000)
        CALL(mgpuStreamDestroy(stream));
}

SITUATION(stream_destroy_of_the_programs_own) {
    hipStream_t stream;
    HIP(hipStreamCreate, hipStream_t *)(&stream);
    CALL(mgpuStreamDestroy(stream));
}

SITUATION(synchronize_idle) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamSynchronize(stream));
    mgpuStreamDestroy(stream);
}

SITUATION(synchronize_after_work) {
    hipStream_t stream = stream_new();
    launch(kernel(), 1, 1, 0, stream);
    CALL(mgpuStreamSynchronize(stream));
    mgpuStreamDestroy(stream);
}

SITUATION(synchronize_null) {
    CALL(mgpuStreamSynchronize(NULL));
}

SITUATION(synchronize_destroyed) {
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamSynchronize(stream));
}

SITUATION(synchronize_unknown) {
    CALL(mgpuStreamSynchronize(UNKNOWN(hipStream_t)));
}

SITUATION(wait_event) {
    hipStream_t first = stream_new(), second = stream_new();
    hipEvent_t event = mgpuEventCreate();
    launch(kernel(), 1, 1, 0, first);
    mgpuEventRecord(event, first);
    CALL(mgpuStreamWaitEvent(second, event));
    mgpuStreamSynchronize(second);
    mgpuEventDestroy(event);
    mgpuStreamDestroy(first);
    mgpuStreamDestroy(second);
}

SITUATION(wait_event_without_a_stream) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    mgpuEventRecord(event, stream);
    CALL(mgpuStreamWaitEvent(NULL, event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_never_recorded) {
    hipStream_t stream = stream_new();
    hipEvent_t event = mgpuEventCreate();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_null) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamWaitEvent(stream, NULL));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_destroyed) {
    hipStream_t stream = stream_new();
    hipEvent_t event = event_destroyed();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_that_is_a_stream) {
    hipStream_t stream = stream_new();
    CALL(mgpuStreamWaitEvent(stream, (hipEvent_t)stream));
    mgpuStreamDestroy(stream);
}

SITUATION(wait_event_on_a_destroyed_stream) {
    hipEvent_t event = mgpuEventCreate();
    hipStream_t stream = stream_destroyed();
    CALL(mgpuStreamWaitEvent(stream, event));
    mgpuEventDestroy(event);
}
