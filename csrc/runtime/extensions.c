/* Scratch buffers: device memory of an owner, kept from use to use. */
#include "base/state.h"
#include "mgpu_rt.h"

void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *scratch, size_t bytes) {
    if (LIKELY(bytes <= scratch->capacity))
        return scratch->data;
    runtime_start();
    void *data = impl_mgpuMemAlloc(bytes, scratch->stream, false);
    if (!data)
        return NULL;
    if (scratch->data)
        impl_mgpuMemFree(scratch->data, scratch->stream);
    scratch->data = data;
    scratch->capacity = bytes;
    return data;
}

void mgpu_rt_scratch_release(struct mgpu_rt_scratch *scratch) {
    if (scratch->data && !runtime_exiting())
        impl_mgpuMemFree(scratch->data, scratch->stream);
    scratch->data = NULL;
    scratch->capacity = 0;
}

void mgpu_rt_scratch_move(struct mgpu_rt_scratch *to, struct mgpu_rt_scratch *from) {
    if (to == from)
        return;
    mgpu_rt_scratch_release(to);
    *to = *from;
    from->data = NULL;
    from->capacity = 0;
}
