/* Streams and events. HIP's default flags equal the driver's default flags: a stream is ordered
 * with the null stream. */
#include "cuhip.h"

hipError_t stream_create(hipStream_t *stream, unsigned flags) {
    if (!stream || flags > hipStreamNonBlocking)
        return hipErrorInvalidValue;
    return from_cuda(cuda.StreamCreate(stream, flags));
}

hipError_t stream_create_with_priority(hipStream_t *stream, unsigned flags, int priority) {
    if (!stream || flags > hipStreamNonBlocking)
        return hipErrorInvalidValue;
    return from_cuda(cuda.StreamCreateWithPriority(stream, flags, priority));
}

hipError_t stream_destroy(hipStream_t stream) {
    return stream ? from_cuda(cuda.StreamDestroy(stream)) : hipErrorInvalidHandle;
}

hipError_t stream_wait_event(hipStream_t stream, hipEvent_t event, unsigned flags) {
    if (!event)
        return hipErrorInvalidHandle;
    return flags ? hipErrorInvalidValue : from_cuda(cuda.StreamWaitEvent(stream, event, 0));
}

hipError_t event_create(hipEvent_t *event, unsigned flags) {
    if (!event || (flags & ~(EVENT_FLAGS_OF_CUDA | EVENT_FLAGS_OF_AMD)))
        return hipErrorInvalidValue;
    return from_cuda(cuda.EventCreate(event, flags & EVENT_FLAGS_OF_CUDA));
}

/* The driver crashes on a null event. */
hipError_t event_call(CUresult (*function)(hipEvent_t), hipEvent_t event) {
    return event ? from_cuda(function(event)) : hipErrorInvalidHandle;
}

hipError_t event_record(hipEvent_t event, hipStream_t stream) {
    return event ? from_cuda(cuda.EventRecord(event, stream)) : hipErrorInvalidHandle;
}

hipError_t event_elapsed(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
    if (!milliseconds)
        return hipErrorInvalidValue;
    if (!start || !stop)
        return hipErrorInvalidHandle;
    return from_cuda(cuda.EventElapsedTime(milliseconds, start, stop));
}
