/* Defines functions of mgpu_rt.h and mgpu_rt_private.h, which are not part of the ABI. Functions
 * that need nothing of this folder are in the folder of their objects. */
#include "abi/lifecycle.h"
#include "abi/override.h"
#include "graphs/build.h"
#include "graphs/graphs.h"
#include "mgpu_rt_private.h"
#include "process/mapped.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"
#include "telemetry/recording/recorder.h"

const char *mgpu_rt_version(void) {
    return MGPU_RT_VERSION;
}

int mgpu_rt_empty_cache(void) {
    runtime_start();
    lazy_settle(NULL);
    return caches_trim();
}

void mgpu_rt_on_out_of_memory(void (*make_room)(int device, size_t bytes)) {
    store_release(&asked_for_memory, make_room);
}

int mgpu_rt_use_stream(hipStream_t handle) {
    runtime_start();
    struct thread *thread = thread_get();
    stream_end_external(thread);
    return !handle || stream_use_external(thread, handle) ? 0 : -1;
}

/* ---- graphs: an override sees nothing of what one replays ---- */

int mgpu_rt_graph_begin(void) {
    static struct advice answered = {
        .text = "no graph is begun, so calls run at once: a hook or runtime in Python answers them "
                "(--hook, mgpu_rt.intercept, mgpu-rt check or diff)"};
    runtime_start();
    if (!override_present())
        return graph_begin(false);
    report_once(&answered);
    return -1;
}

int mgpu_rt_graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream) {
    static struct advice unseen = {
        .text = "a graph is replayed: the hook or runtime (--hook, mgpu_rt.intercept, "
                "mgpu-rt check or diff) sees nothing of its work"};
    if (override_present())
        report_once(&unseen);
    return graph_launch(graph, stream);
}

size_t mgpu_rt_graph_nodes(const struct mgpu_rt_graph *graph) {
    return graph ? graph->node_count : 0;
}

int mgpu_rt_graph_enter(struct mgpu_rt_graph_function *function, const void *arguments,
                        size_t bytes) {
    runtime_start();
    return graph_enter(function, arguments, bytes, override_present());
}

/* ---- scratch buffers: device memory of an owner, kept from use to use ---- */

void *mgpu_rt_scratch_reserve(struct mgpu_rt_scratch *scratch, size_t bytes) {
    if (LIKELY(bytes <= scratch->capacity))
        return scratch->data;
    runtime_start();
    if (DOUBT(nodes_use_the_scratch_buffer, graph_building && scratch->data))
        graph_fail("it grows a scratch buffer that its nodes already use");
    void *data = impl_mgpuMemAlloc(bytes, scratch->stream, false);
    recorder_block(data, 1);
    if (!data)
        return NULL;
    mgpu_rt_scratch_release(scratch);
    scratch->data = data;
    scratch->capacity = bytes;
    return data;
}

void mgpu_rt_scratch_release(struct mgpu_rt_scratch *scratch) {
    if (scratch->data && !runtime_exiting()) {
        recorder_block(scratch->data, -1);
        impl_mgpuMemFree(scratch->data, scratch->stream);
    }
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

/* ---- mgpu_rt_private.h ---- */

unsigned long long mgpu_rt_image_place(const void *image, char *file, size_t size,
                                       unsigned long long *hash) {
    *hash = image_describe(image).hash;
    return mapped_place(image, file, size);
}

const char *mgpu_rt_hip_path(void) {
    return hip_path();
}

unsigned long long mgpu_rt_epoch(int of_device) {
    const int device = of_device < 0 ? hip_current_device() : of_device;
    (void)device_kept(device);
    return (unsigned long long)device << 1 | device_has_caches(device);
}
