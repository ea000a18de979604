/* mgpuMemcpy, mgpuMemset16, mgpuMemset32.
 *
 * A copy runs in the stream's order, and has the same effect as a copy of the stock function. When
 * the call returns, pageable source memory has been read and pageable target memory has been
 * written; HIP 7 may write it later (docs/stock.md). Some copies between pageable memory and a
 * block of this library go through pinned memory (staging.h); HIP makes all other copies.
 *
 * If no table of the library contains an address, the library cannot assume that the address is
 * host memory. The address may lie in a module's global, in another library's memory, or in managed
 * or mapped memory. The library asks HIP only before a copy that could be staged. With
 * MGPU_RT_EXCLUSIVE=on, HIP's answer stays valid until this library changes its table of memory
 * ranges. */
#include "driver/device.h"
#include "memory/blocks.h"
#include "memory/registrations.h"
#include "memory/staging.h"
#include "streams/mgpu_stream.h"

#include <stdlib.h>
#include <string.h>

static struct advice bad_copy = {
    .text = "copy of %llu bytes from %p to %p: check that both allocations hold that many"};
static struct advice bad_fill = {.text = "fill of %llu elements of %d bytes at %p: check that "
                                         "device memory of that size begins there"};

static const char copy_expression[] =
    "hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)";

/* HIP up to version 5 refuses pageable memory; later versions describe pageable memory as memory
 * without a device address. */
static bool hip_calls_pageable(const void *address) {
    struct {
        hipPointerAttribute_t is;
        uint64_t room[8]; /* for fields that a later HIP may add */
    } pointer = {.is = {.device_pointer = NULL}};
    if (cuda_present())
        return cuda.memory_type(address) == 0;
    const hipError_t error = hip.PointerGetAttributes(&pointer.is, address);
    if (error != hipSuccess)
        device_clear_error(error);
    return error == hipErrorInvalidValue ||
           (error == hipSuccess && !pointer.is.device_pointer && !pointer.is.is_managed);
}

/* Returns whether HIP describes these bytes as pageable host memory. The library asks HIP about the
 * first and the last byte, because HIP may know only the last bytes. */
static bool is_pageable(struct thread *thread, const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address, end = begin + bytes;
    const uint64_t mappings = ranges_now() + 1; /* never 0, which marks an empty slot */
    const bool sole_user = exclusive_hip();
    for (size_t i = 0; i < HOST_SLOTS && sole_user; i++)
        if (thread->hosts[i].begin <= begin && end <= thread->hosts[i].end &&
            thread->hosts[i].mappings == mappings)
            return true;
    const enum range_kind kind = ranges_find(address, bytes);
    if (kind != RANGE_NONE && kind != RANGE_MIXED) /* for RANGE_MIXED, HIP must decide */
        return false;
    if (!PROOF(hip_knows_nothing_there,
               hip_calls_pageable(address) &&
                   (bytes <= 1 || hip_calls_pageable((const char *)address + bytes - 1))))
        return false;
    if (sole_user && !thread_is_none(thread))
        thread->hosts[thread->next_host++ % HOST_SLOTS] = (struct host_slot){begin, end, mappings};
    return true;
}

static bool is_block(const void *address, size_t bytes) {
    return ranges_find(address, bytes) == RANGE_DEVICE;
}

/* Returns true if the library can know the work that is pending on the null stream, for which every
 * stream waits. If other code calls HIP, only NVIDIA's driver answers this question. On AMD's HIP
 * the question itself makes the null stream wait for the kernels of all streams. All streams then
 * wait for the null stream. */
static bool knows_the_null_stream(void) {
    return PROOF(question_delays_no_stream, exclusive_hip() || cuda_present());
}

/* Returns true if this stream and the null stream have no pending work that can write memory. */
static bool is_quiet(struct stream *stream) {
    if (stream_has_kernels(stream) || stream_state(stream) != STREAM_LIVE)
        return false;
    if (exclusive_hip())
        return PROOF(null_stream_writes_no_source, stream_is_idle(&stream_null[stream->device]));
    return device_answered(hip.StreamQuery(NULL)) && stream_ask(stream) == hipSuccess;
}

/* Returns true if the host may read the source now, because no earlier work of the stream can still
 * write to the source. NVIDIA's driver knows all memory that kernels may write, unless kernels can
 * access pageable memory. AMD's HIP does not distinguish a module's global from pageable memory:
 * for each of them HIP reports an invalid pointer. So with MGPU_RT_EXCLUSIVE=on on AMD's GPUs, and
 * on devices that access pageable memory, the stream must have no pending work that can write
 * memory. */
static bool is_settled(struct stream *stream) {
    return (cuda_present() && !device_reaches_pageable(stream->device)) ||
           PROOF(source_has_its_last_value, is_quiet(stream));
}

static void report_copy(hipError_t error, const struct copy *copy) {
    report_failure(copy_expression, error, &bad_copy, (unsigned long long)copy->bytes, copy->from,
                   copy->to);
}

enum { PIECE = 4 << 20 };

/* Copies from or to memory that the program has unregistered, but whose pages HIP still pins. For
 * the program this memory is pageable. The function copies through pageable memory of its own, so
 * HIP waits exactly as for pageable memory. To unregister the memory first would wait for all
 * streams. Returns false if nothing was copied. */
static __attribute__((noinline)) bool copy_unregistered(const struct copy *copy) {
    const bool up = is_block(copy->to, copy->bytes);
    char *host = up ? (char *)(uintptr_t)copy->from : copy->to;
    hipError_t error = hipSuccess;
    if ((!up && !is_block(copy->from, copy->bytes)) || !registrations_are_idle(host, copy->bytes) ||
        (runtime_is(MODE_EXTERNAL) && stream_may_be_captured(copy->handle)))
        return false;
    char *piece = malloc(copy->bytes < PIECE ? copy->bytes : PIECE);
    const bool has_room = piece != NULL;
    for (size_t done = 0, bytes; has_room && error == hipSuccess && done < copy->bytes;
         done += bytes) {
        bytes = copy->bytes - done < PIECE ? copy->bytes - done : PIECE;
        if (up)
            memcpy(piece, host + done, bytes);
        error = hip.MemcpyAsync(up ? (char *)copy->to + done : piece,
                                up ? piece : (const char *)copy->from + done, bytes,
                                hipMemcpyDefault, copy->handle);
        if (!up && error == hipSuccess)
            memcpy(host + done, piece, bytes);
    }
    free(piece);
    if (UNLIKELY(error != hipSuccess))
        report_copy(error, copy);
    return has_room;
}

/* NVIDIA's driver reads the bytes of a small copy during the call. */
static bool hip_takes_at_once(size_t bytes) {
    return cuda_present() && bytes <= STAGING_CUDA_TAKES;
}

/* Records a copy that HIP makes: a bypass, if pinned memory could have served it. */
static __attribute__((noinline)) void tell_submitted(const struct copy *copy) {
    const enum range_kind to = ranges_find(copy->to, copy->bytes);
    const enum range_kind from = ranges_find(copy->from, copy->bytes);
    const bool up = to == RANGE_DEVICE && from == RANGE_NONE && knows_the_null_stream() &&
                    !hip_takes_at_once(copy->bytes);
    const bool down = to == RANGE_NONE && from == RANGE_DEVICE && cuda_present();
    call_tell(up || down ? CALL_BYPASS : CALL_PLAIN);
}

static void submit_copy(const struct copy *copy) {
    if (UNLIKELY(runtime_counting()))
        tell_submitted(copy);
    if (UNLIKELY(load_relaxed(&registrations_idle) != 0) && copy_unregistered(copy))
        return;
    registrations_yield(copy->to, copy->bytes);
    registrations_yield(copy->from, copy->bytes);
    const size_t bytes =
        PROOF_VALUE(copy_ends_in_what_was_asked,
                    block_past(copy->from, block_past(copy->to, copy->bytes)), copy->bytes);
    const hipError_t error =
        hip.MemcpyAsync(copy->to, copy->from, bytes, hipMemcpyDefault, copy->handle);
    if (UNLIKELY(error != hipSuccess))
        report_copy(error, copy);
}

/* Copies to a block. The target is device memory, so neither a staged copy nor HIP's own copy
 * writes host memory. The library asks about pending work last, because that question is for
 * pageable sources only. */
static void copy_up(const struct copy *copy) {
    hipError_t error = hipSuccess;
    if (!hip_takes_at_once(copy->bytes) &&
        (LIKELY(copy->bytes <= STAGING_UP_IDLE) ||
         (copy->bytes <= STAGING_UP_LIMIT && !stream_is_idle(copy->stream))) &&
        knows_the_null_stream() && is_pageable(copy->thread, copy->from, copy->bytes) &&
        is_settled(copy->stream) && staging_up(copy, &error)) {
        if (UNLIKELY(error != hipSuccess))
            report_copy(error, copy);
        return;
    }
    submit_copy(copy);
    stream_submitted(copy->stream);
}

/* Returns true if a copy from a block to pageable memory was completed through pinned memory. AMD's
 * HIP takes less time for its own copy (bench/results/copies.md). */
static bool copy_down(const struct copy *copy) {
    hipError_t error = hipSuccess;
    if (!cuda_present() || copy->bytes > STAGING_DOWN || !is_block(copy->from, copy->bytes) ||
        !is_pageable(copy->thread, copy->to, copy->bytes) || !staging_down(copy, &error))
        return false;
    if (UNLIKELY(error != hipSuccess))
        report_failure(copy_expression, error, &stream_fault);
    return true;
}

void impl_mgpuMemcpy(void *dst, void *src, size_t sizeBytes, hipStream_t handle) {
    struct copy copy = {thread_get(), NULL, handle, dst, src, sizeBytes};
    if (!stream_usable(copy.thread, handle, &copy.stream, copy_expression))
        return;
    const bool cached =
        cache_is_on(CACHE_STAGING) && dst && src && sizeBytes && handle && copy.stream;
    if (cached && is_block(dst, sizeBytes)) {
        copy_up(&copy);
    } else if (!cached || !copy_down(&copy)) {
        submit_copy(&copy);
        stream_launched(copy.stream); /* the copy may write host memory */
    }
}

/* Returns how many elements HIP gets: HIP refuses a fill that ends in the part of a block for which
 * the program did not ask. */
static size_t count_for_hip(const void *address, size_t count, size_t width) {
    size_t bytes;
    if (__builtin_mul_overflow(count, width, &bytes))
        return count;
    const size_t past = PROOF_VALUE(fill_ends_in_what_was_asked, block_past(address, bytes), bytes);
    return past == bytes ? count : past / width + 1;
}

void impl_mgpuMemset32(void *dst, int value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression,
           hip.MemsetD32Async(dst, value, count_for_hip(dst, count, sizeof value), handle),
           &bad_fill, (unsigned long long)count, 4, dst);
    stream_launched(stream);
}

void impl_mgpuMemset16(void *dst, uint16_t value, size_t count, hipStream_t handle) {
    static const char expression[] =
        "hipMemsetD16Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, stream)";
    struct stream *stream;
    if (!stream_usable(thread_get(), handle, &stream, expression))
        return;
    REPORT(expression,
           hip.MemsetD16Async(dst, value, count_for_hip(dst, count, sizeof value), handle),
           &bad_fill, (unsigned long long)count, 2, dst);
    stream_launched(stream);
}
