/* Graphs of others: how calls behave on an external stream that the program captures
 * (torch.cuda.graph, CuPy, hipStreamBeginCapture).
 *
 * HIP reports whether a stream captures; the library asks only about external streams. The recorded
 * calls run later and repeatedly, without a call to this library. So no other caller gets a block
 * that the recorded calls use. During a capture, the library neither waits nor makes a query to HIP
 * that would end the capture. */
#include "driver/device.h"
#include "graphs/graphs.h"
#include "memory/blocks.h"
#include "modules/modules.h"

static struct advice not_captured = {
    .text = "stream %p is being captured, but this release of HIP runs launches of a module's "
            "kernels at once and leaves them out of the graph (5.3 and later capture them). Build "
            "the graph by mgpu_rt_graph_begin instead"};
static struct advice no_memory_captured = {
    .text = "no device memory for %llu bytes while stream %p is being captured: during a capture "
            "the caches release nothing"};

/* ---- does it capture? ---- */

struct capture {
    struct stream *stream;     /* NULL: the thread is not capturing */
    unsigned long long number; /* a number that no other capture has; 0: HIP reports no number */
};

/* Returns the capture of a thread's external stream, even if the capture has failed but was not
 * ended yet. */
static struct capture capture_on(struct stream *stream) {
    struct capture found = {NULL, 0};
    int status = hipStreamCaptureStatusNone;
    if (!stream || !load_relaxed(&stream->external_users))
        return found;
    const hipError_t error =
        hip.StreamGetCaptureInfo(stream_handle(stream), &status, &found.number);
    if (error == hipErrorNotSupported)
        return found;
    if (error != hipSuccess)
        device_clear_error(error);
    else if (PROOF(stream_captures_now, status != hipStreamCaptureStatusNone))
        found.stream = stream;
    return found;
}

static struct capture capture_of_handle(hipStream_t handle) {
    return capture_on(handle ? stream_find(thread_get(), handle) : NULL);
}

/* Handles calls that name no stream: the thread's external stream is used. */
static struct capture capture_of_thread(void) {
    return capture_on(thread_get()->external);
}

bool capture_on_thread(void) {
    return runtime_is(MODE_EXTERNAL) && capture_of_thread().stream;
}

bool capture_on_stream(hipStream_t handle) {
    return runtime_is(MODE_EXTERNAL) && capture_of_handle(handle).stream;
}

/* ---- calls of HIP's that a capture bears only in relaxed mode ---- */

/* Returns the previous mode; -1 if no stream captures. */
static int relax(struct capture capture) {
    int mode = hipStreamCaptureModeRelaxed;
    return capture.stream && hip.ThreadExchangeStreamCaptureMode(&mode) == hipSuccess ? mode : -1;
}

static void relax_no_more(int before) {
    if (before >= 0)
        (void)hip.ThreadExchangeStreamCaptureMode(&before);
}

/* ---- waits ---- */

static void captured_synchronize(hipStream_t handle) {
    if (DOUBT(synchronised_stream_captures, capture_of_handle(handle).stream))
        return; /* HIP would end the capture */
    impl_mgpuStreamSynchronize(handle);
}

static void captured_record(hipEvent_t handle, hipStream_t stream) {
    struct event *event = event_held(handle);
    if (event)
        event->captured = PROOF_VALUE(event_is_of_a_capture, capture_of_handle(stream).stream,
                                      stream_known(stream));
    impl_mgpuEventRecord(handle, stream);
}

/* Before HIP 6, skips the wait if the same stream has recorded the event, because a stream runs its
 * own work in order. After such a wait HIP 5.7.1 refuses further calls. A lowered function that
 * forks and joins on an external stream makes such waits. */
static void captured_wait_event(hipStream_t handle, hipEvent_t event_handle) {
    const struct event *event = event_held(event_handle);
    const struct stream *stream = NULL;
    if (event && event->captured && !cuda_present() && hip_version < HIP_6_0)
        stream = capture_of_handle(handle).stream;
    if (!stream || event->captured != stream)
        impl_mgpuStreamWaitEvent(handle, event_handle);
}

static void captured_event_synchronize(hipEvent_t handle) {
    const struct event *event = event_held(handle);
    if (!event || !capture_on(event->captured).stream)
        impl_mgpuEventSynchronize(handle);
}

/* ---- memory ---- */

static void *captured_alloc(uint64_t bytes, hipStream_t handle, bool shared) {
    const struct capture capture = capture_of_handle(handle);
    hipError_t error;
    const bool serves = DOUBT(block_is_for_a_capture, capture.stream) &&
                        block_serves(bytes, capture.stream->device);
    if (!serves)
        return impl_mgpuMemAlloc(bytes, handle, shared);
    const int before = relax(capture);
    void *address = block_alloc_captured(bytes, capture.stream, capture.number, &error);
    relax_no_more(before);
    if (error != hipSuccess)
        report_failure("hipMalloc(&ptr, sizeBytes)", error,
                       error == hipErrorOutOfMemory ? &no_memory_captured : NULL,
                       (unsigned long long)bytes, (void *)handle);
    return address;
}

/* Each launch of the graph uses the block, so no other caller may get the block. No release of HIP
 * reliably reports when a graph is destroyed (docs/graphs.md, "Graphs of others"). */
static void captured_free(void *address, hipStream_t handle) {
    struct capture capture = capture_of_handle(handle);
    if (!handle)
        capture = capture_of_thread();
    struct block *block =
        DOUBT(graph_may_use_a_freed_block, capture.stream) ? block_find(address) : NULL;
    if (!block || !block_leave_to_graph(block, capture.stream))
        impl_mgpuMemFree(address, handle);
}

/* The library passes the copy to HIP, because a graph cannot contain the library's pinned memory
 * and queries. */
static void captured_copy(void *to, void *from, size_t bytes, hipStream_t handle) {
    const struct capture capture = capture_of_handle(handle);
    if (DOUBT(copy_runs_with_its_graph, capture.stream)) {
        call_tell(CALL_PLAIN);
        REPORT("hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)",
               hip.MemcpyAsync(to, from, bytes, hipMemcpyDefault, handle), NULL);
        stream_launched(capture.stream);
    } else {
        impl_mgpuMemcpy(to, from, bytes, handle);
    }
}

/* ---- modules and launches ---- */

static hipModule_t captured_load(void *image, size_t size) {
    const int before = relax(capture_of_thread());
    const hipModule_t module = impl_mgpuModuleLoad(image, size);
    relax_no_more(before);
    return module;
}

static hipModule_t captured_load_jit(void *assembly, int level, size_t size) {
    const int before = relax(capture_of_thread());
    const hipModule_t module = impl_mgpuModuleLoadJIT(assembly, level, size);
    relax_no_more(before);
    return module;
}

static hipFunction_t captured_function(hipModule_t module, const char *name) {
    const int before = relax(capture_of_thread());
    const hipFunction_t function = impl_mgpuModuleGetFunction(module, name);
    relax_no_more(before);
    return function;
}

/* Handles an unload during a capture. The module stays loaded, because the graph launches its
 * kernels, and other loads may use the module. If the module has writable globals, other loads must
 * not use the module. */
static void captured_unload(hipModule_t handle) {
    struct module *module = capture_of_thread().stream ? handle_find(&module_map, handle) : NULL;
    if (!module || module_state(module) != MODULE_LIVE) {
        impl_mgpuModuleUnload(handle);
        return;
    }
    PROOF_STEP(captured_kernels_module_stays, module_hold(module));
    module_release(module);
}

static void captured_launch(hipFunction_t function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                            intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                            hipStream_t stream, void **params, void **extra, size_t params_count) {
    if (!not_captured.given && hip_version && hip_version < HIP_5_3 && !cuda_present() &&
        capture_of_handle(stream).stream)
        report_once(&not_captured, (void *)stream);
    impl_mgpuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, stream,
                          params, extra, params_count);
}

const mgpu_rt_function capture_calls[ABI_COUNT] = {
    [ABI_mgpuStreamSynchronize] = (mgpu_rt_function)captured_synchronize,
    [ABI_mgpuEventRecord] = (mgpu_rt_function)captured_record,
    [ABI_mgpuStreamWaitEvent] = (mgpu_rt_function)captured_wait_event,
    [ABI_mgpuEventSynchronize] = (mgpu_rt_function)captured_event_synchronize,
    [ABI_mgpuMemAlloc] = (mgpu_rt_function)captured_alloc,
    [ABI_mgpuMemFree] = (mgpu_rt_function)captured_free,
    [ABI_mgpuMemcpy] = (mgpu_rt_function)captured_copy,
    [ABI_mgpuModuleLoad] = (mgpu_rt_function)captured_load,
    [ABI_mgpuModuleLoadJIT] = (mgpu_rt_function)captured_load_jit,
    [ABI_mgpuModuleGetFunction] = (mgpu_rt_function)captured_function,
    [ABI_mgpuModuleUnload] = (mgpu_rt_function)captured_unload,
    [ABI_mgpuLaunchKernel] = (mgpu_rt_function)captured_launch,
};
