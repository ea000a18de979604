/* Copies and fills. The stub accesses device and pinned memory when the stream executes the
 * operation, so a program that forgets to wait reads a wrong byte. As in HIP, a copy from pageable
 * memory reads the bytes during the call, and a copy to pageable memory is synchronous. */
#include "calls.h"
#include "graph.h"
#include "memory.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    struct operation operation;
    void *to;
    const void *from;
    size_t bytes;
    void *staged; /* a copy of the source, or NULL if the stream reads `from` later */
};

struct fill {
    struct operation operation;
    void *to;
    unsigned value;
    unsigned width;
    size_t count;
};

static void run_copy(struct operation *operation) {
    struct copy *copy = (struct copy *)operation;
    memory_copy(copy->to, copy->from, copy->bytes);
}

static void end_copy(struct operation *operation) {
    free(((struct copy *)operation)->staged);
}

static void run_fill(struct operation *operation) {
    struct fill *fill = (struct fill *)operation;
    char *to = fill->to;
    for (size_t i = 0; i < fill->count; ++i, to += fill->width)
        memcpy(to, &fill->value, fill->width); /* the low bytes of the value */
}

static struct copy *copy_new(void *to, const void *from, size_t bytes) {
    struct copy *copy = calloc(1, sizeof *copy);
    const struct operation operation = {.work = run_copy, .end = end_copy, .delayed = true};
    *copy = (struct copy){operation, to, from, bytes, NULL};
    return copy;
}

hipError_t copy_operation(void *to, const void *from, size_t bytes, struct operation **operation) {
    if (bytes == 0 || to == NULL || from == NULL ||
        memory_check("hipGraphAddMemcpyNode1D", from, bytes) < 0 ||
        memory_check("hipGraphAddMemcpyNode1D", to, bytes) < 0)
        return hipErrorInvalidValue;
    *operation = &copy_new(to, from, bytes)->operation;
    return hipSuccess;
}

hipError_t emu_hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                              hipStream_t stream) {
    (void)kind; /* AMD's HIP ignores `kind` too, and derives the direction from the addresses */
    struct ihipStream_t *found = stream_of("hipMemcpyAsync", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (bytes == 0)
        return hipSuccess;
    if (to == NULL || from == NULL)
        return hipErrorInvalidValue;
    int from_known = memory_check("hipMemcpyAsync", from, bytes);
    int to_known = memory_check("hipMemcpyAsync", to, bytes);
    if (to_known < 0 || from_known < 0)
        return hipErrorInvalidValue;
    struct copy *copy = copy_new(to, from, bytes);
    if (from_known == 0 && found->capture == NULL) {
        copy->staged = malloc(bytes);
        copy->from = memcpy(copy->staged, from, bytes);
    }
    stream_submit(found, &copy->operation);
    if (to_known == 0 && found->capture == NULL)
        stream_wait(found, found->submitted);
    return hipSuccess;
}

hipError_t emu_hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    hipError_t error = emu_hipMemcpyAsync(to, from, bytes, kind, NULL);
    if (error == hipSuccess)
        stream_wait(stream_null(), stream_null()->submitted);
    return error;
}

static struct operation *fill_new(void *to, unsigned value, unsigned width, size_t count) {
    struct fill *fill = calloc(1, sizeof *fill);
    *fill = (struct fill){{.work = run_fill, .delayed = true}, to, value, width, count};
    return &fill->operation;
}

static hipError_t fill(const char *function, void *to, unsigned value, unsigned width, size_t count,
                       hipStream_t stream) {
    struct ihipStream_t *found = stream_of(function, stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    if (count == 0)
        return hipSuccess;
    if (memory_check(function, to, count * width) <= 0)
        return hipErrorInvalidValue;
    stream_submit(found, fill_new(to, value, width, count));
    return hipSuccess;
}

hipError_t fill_operation(const hipMemsetParams *params, struct operation **operation) {
    if (params->width == 0 || params->height != 1 ||
        memory_check("hipGraphAddMemsetNode", params->dst, params->width * params->elementSize) <=
            0)
        return hipErrorInvalidValue;
    *operation = fill_new(params->dst, params->value, params->elementSize, params->width);
    return hipSuccess;
}

hipError_t emu_hipMemset(void *to, int value, size_t bytes) {
    return fill("hipMemset", to, (unsigned)value, 1, bytes, NULL);
}

hipError_t emu_hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
    return fill("hipMemsetAsync", to, (unsigned)value, 1, bytes, stream);
}

hipError_t emu_hipMemsetD32(void *to, int value, size_t count) {
    return fill("hipMemsetD32", to, (unsigned)value, 4, count, NULL);
}

hipError_t emu_hipMemsetD32Async(void *to, int value, size_t count, hipStream_t stream) {
    return fill("hipMemsetD32Async", to, (unsigned)value, 4, count, stream);
}

hipError_t emu_hipMemsetD16Async(void *to, unsigned short value, size_t count, hipStream_t stream) {
    return fill("hipMemsetD16Async", to, value, 2, count, stream);
}
