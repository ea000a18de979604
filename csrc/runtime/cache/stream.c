#include "cache/stream.h"
#include "base/state.h"
#include "hip/device.h"
#include "hip/hip.h"

#include <stdlib.h>

struct handle_map stream_map;
uintptr_t stream_others;

struct advice stream_fault = {
    .text = "an error of earlier work shows here: a kernel on this device has failed, or a copy "
            "before it"};

struct stream *stream_enter(hipStream_t handle, int device, int state) {
    pthread_mutex_lock(&tables_lock);
    struct stream *stream = handle_find(&stream_map, handle);
    if (!stream && (stream = aligned_alloc(64, sizeof *stream))) {
        *stream = (struct stream){.handle.key = handle, .device = device, .state = STREAM_GONE};
        handle_add(&stream_map, &stream->handle);
    }
    if (stream) {
        store_relaxed(&stream->device, device);
        store_relaxed(&stream->busy, STREAM_IDLE);
        store_release(&stream->state, state);
    }
    pthread_mutex_unlock(&tables_lock);
    return stream;
}

/* ---- asking HIP, and waiting ---- */

hipError_t stream_ask(struct stream *stream) {
    const uint64_t mark = stream_set_mark(stream);
    const hipError_t error = hip.StreamQuery(stream_handle(stream));
    if (error == hipSuccess)
        stream_pass(stream, mark);
    else
        device_forget_error(error);
    return error;
}

/* The stream is idle afterwards unless another thread has submitted to it or has begun to
 * synchronise it meanwhile: then its busy is not this thread's any more. */
hipError_t stream_wait(struct thread *thread, struct stream *stream) {
    uintptr_t token = (uintptr_t)thread;
    const uint64_t mark = stream_set_mark(stream);
    store_release(&stream->busy, token);
    const hipError_t error = hip.StreamSynchronize(stream_handle(stream));
    if (UNLIKELY(error != hipSuccess)) {
        stream_launched(stream);
        return error;
    }
    stream_pass(stream, mark);
    cas_acq_rel(&stream->busy, &token, STREAM_IDLE);
    return hipSuccess;
}

bool stream_any_busy(void) {
    for (const struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (stream_state(stream) != STREAM_GONE && load_acquire(&stream->busy))
            return true;
    return false;
}

/* Of several threads here each waits by itself: one that finds another waiting knows nothing yet.
 */
hipError_t stream_wait_for_device(int device) {
    uintptr_t token = (uintptr_t)thread_get();
    if (exclusive_hip() && !stream_any_busy() && load_acquire(&stream_others) == OTHERS_IDLE)
        return hipSuccess;
    const int current = hip_current_device();
    hipError_t error = current != device ? hip.SetDevice(device) : hipSuccess;
    if (hip_device_count == 1)
        store_seq_cst(&stream_others, token);
    if (error == hipSuccess)
        error = hip.DeviceSynchronize();
    cas_seq_cst(&stream_others, &token, error == hipSuccess ? OTHERS_IDLE : OTHERS_BUSY);
    if (current != device)
        (void)hip.SetDevice(current);
    return error;
}
