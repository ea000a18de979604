/* mgpuMemcpy, mgpuMemset16, mgpuMemset32.
 *
 * What a copy means is as with stock: in the stream's order, the source of a copy from pageable
 * memory free when the call returns, the end of one to pageable memory filled. Between pageable
 * memory and a block of ours it goes through pinned memory (staging.h); all others are HIP's. */
#include "cuda.h"
#include "device.h"
#include "exclusive.h"
#include "ranges.h"
#include "staging.h"

static struct advice bad_copy = {
    .text = "copy of %llu bytes from %p to %p: check that both ends are allocated as long"};
static struct advice bad_fill = {
    .text =
        "fill of %llu elements of %d bytes at %p: this must be device memory, allocated as long"};

static const char copy_expression[] =
    "hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)";

/* NVIDIA's driver takes the bytes of a small copy to the device and goes on: nothing blocks, and
 * pinned memory would only add a copy (0.7 of 16 µs in churn on an H100). */
enum { CUDA_TAKES = 16 << 10 };

enum place { PLACE_BLOCK, PLACE_PAGEABLE, PLACE_OTHER, PLACE_UNKNOWN };

/* What HIP says of an address that is none of ours. It refuses pageable memory up to version 5, and
 * describes it as without device address since; the refusal must not stay in the last error, which
 * the program may read. */
static enum place ask(const void *address) {
    struct hip_pointer pointer = {.device_pointer = NULL};
    if (hip.PeekAtLastError() != hipSuccess)
        return PLACE_UNKNOWN;
    const hipError_t error = hip.PointerGetAttributes(&pointer, address);
    if (error != hipSuccess)
        (void)hip.GetLastError();
    const bool pageable = error == hipErrorInvalidValue ||
                          (error == hipSuccess && !pointer.device_pointer && !pointer.is_managed);
    return pageable ? PLACE_PAGEABLE : PLACE_OTHER;
}

static enum place place_of(const void *address, size_t bytes) {
    switch (ranges_find(address, bytes)) {
    case RANGE_DEVICE:
        return PLACE_BLOCK;
    case RANGE_NONE:
        return exclusive_hip() ? PLACE_PAGEABLE : ask(address);
    case RANGE_MIXED: /* or the table is being written by a thread that was interrupted */
        return ask(address);
    default:
        return PLACE_OTHER;
    }
}

/* True if the source has its last value already: nothing before the copy in the stream's order can
 * write it. On a device that reaches pageable memory a kernel could. */
static bool is_settled(const struct stream *stream) {
    if (!device_reaches_pageable(stream->device))
        return true;
    const uintptr_t busy = __atomic_load_n(&stream->busy, __ATOMIC_ACQUIRE);
    return (busy == STREAM_IDLE || busy == STREAM_SUBMITTED) &&
           stream_state(stream) == STREAM_LIVE && exclusive_hip();
}

static void report_copy(hipError_t error, const void *dst, const void *src, size_t bytes) {
    report_failure(copy_expression, error, &bad_copy, (unsigned long long)bytes, src, dst);
}

static void submit(void *dst, const void *src, size_t bytes, hipStream_t handle) {
    const hipError_t error = hip.MemcpyAsync(dst, src, bytes, hipMemcpyDefault, handle);
    if (UNLIKELY(error != hipSuccess))
        report_copy(error, dst, src, bytes);
}

static void copy_by_hip(struct stream *stream, hipStream_t handle, void *dst, const void *src,
                        size_t bytes) {
    submit(dst, src, bytes, handle);
    stream_launched(stream); /* it may write host memory */
}

/* HIP's copies to pageable memory have arrived when they return; this makes sure that it holds with
 * every HIP, as staged copies that come later read the host's memory at once. */
static void wait_for_copy(struct thread *thread, struct stream *stream, hipStream_t handle) {
    const hipError_t error = stream ? stream_wait(thread, stream) : hip.StreamSynchronize(handle);
    if (UNLIKELY(error != hipSuccess))
        report_failure(copy_expression, error, &stream_fault);
}

static void copy(struct thread *thread, struct stream *stream, hipStream_t handle, void *dst,
                 const void *src, size_t bytes) {
    const enum place to = place_of(dst, bytes), from = place_of(src, bytes);
    hipError_t error = hipSuccess;
    if (from == PLACE_PAGEABLE && to == PLACE_BLOCK && stream && cuda_present() &&
        bytes <= CUDA_TAKES) {
        submit(dst, src, bytes, handle);
        stream_submitted(stream);
        return;
    }
    if (from == PLACE_PAGEABLE && to == PLACE_BLOCK && stream && is_settled(stream) &&
        staging_up(stream, dst, src, bytes, &error)) {
        if (UNLIKELY(error != hipSuccess))
            report_copy(error, dst, src, bytes);
        return;
    }
    if (from == PLACE_BLOCK && to == PLACE_PAGEABLE && stream &&
        staging_down(thread, stream, dst, src, bytes, &error)) {
        if (UNLIKELY(error != hipSuccess))
            report_failure(copy_expression, error, &stream_fault);
        return;
    }
    copy_by_hip(stream, handle, dst, src, bytes);
    if (to == PLACE_PAGEABLE || to == PLACE_UNKNOWN)
        wait_for_copy(thread, stream, handle);
}

void impl_mgpuMemcpy(void *dst, void *src, size_t sizeBytes, hipStream_t handle) {
    struct thread *thread = thread_get();
    struct stream *stream;
    if (!stream_usable(thread, handle, &stream, copy_expression))
        return;
    if (options.cache_on && dst && src && sizeBytes)
        copy(thread, stream, handle, dst, src, sizeBytes);
    else
        copy_by_hip(stream, handle, dst, src, sizeBytes);
}

void impl_mgpuMemset32(void *dst, int value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression, hip.MemsetD32Async(dst, value, count, handle), &bad_fill,
           (unsigned long long)count, 4, dst);
    stream_launched(stream);
}

void impl_mgpuMemset16(void *dst, uint16_t value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD16Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression, hip.MemsetD16Async(dst, value, count, handle), &bad_fill,
           (unsigned long long)count, 2, dst);
    stream_launched(stream);
}
