/* Kernel bodies for HIPSTUB_KERNELS. With these bodies, the lowered programs print the right
 * results on the stub. One call of a body does the work of the whole grid. */
#include "hipstub.h"

/* A memref<?xf32> in the form that MLIR passes: allocated, aligned, offset, size, stride. */
enum { MEMREF = 5, ALIGNED = 1, OFFSET = 2 };

static float *floats(void **params, unsigned first) {
    return *(float **)params[first + ALIGNED] + *(int64_t *)params[first + OFFSET];
}

static int32_t *integers(void **params, unsigned first) {
    return *(int32_t **)params[first + ALIGNED] + *(int64_t *)params[first + OFFSET];
}

/* increment(data, count) */
static void increment(void **params) {
    float *data = floats(params, 0);
    for (int64_t i = 0; i < *(int64_t *)params[MEMREF]; ++i)
        data[i] += 1.0f;
}

/* vecadd(a, b, c, count) */
static void vecadd(void **params) {
    const float *a = floats(params, 0), *b = floats(params, MEMREF);
    float *c = floats(params, 2 * MEMREF);
    for (int64_t i = 0; i < *(int64_t *)params[3 * MEMREF]; ++i)
        c[i] = a[i] + b[i];
}

/* layer(from, to, count) */
static void layer(void **params) {
    const float *from = floats(params, 0);
    float *to = floats(params, MEMREF);
    for (int64_t i = 0; i < *(int64_t *)params[2 * MEMREF]; ++i)
        to[i] = from[i] + 1.0f;
}

/* add(data, amount); the grid has one block */
static void add(void **params) {
    unsigned size[6];
    hipstub_launch_size(size);
    float *data = floats(params, 0);
    for (unsigned i = 0; i < size[3]; ++i)
        data[i] += *(float *)params[MEMREF];
}

/* sum(a, b, c, out); the grid has one block */
static void sum(void **params) {
    unsigned size[6];
    hipstub_launch_size(size);
    const float *a = floats(params, 0), *b = floats(params, MEMREF);
    const float *c = floats(params, 2 * MEMREF);
    float *out = floats(params, 3 * MEMREF);
    for (unsigned i = 0; i < size[3]; ++i)
        out[i] = a[i] + b[i] + c[i];
}

/* Returns the number of threads of the grid, if grid and blocks have one dimension. */
static int64_t threads(void) {
    unsigned size[6];
    hipstub_launch_size(size);
    return (int64_t)size[0] * size[3];
}

/* scale(data, factor) */
static void scale(void **params) {
    float *data = floats(params, 0);
    for (int64_t i = 0; i < threads(); ++i)
        data[i] *= *(float *)params[MEMREF];
}

/* join(to, from) */
static void join(void **params) {
    float *to = floats(params, 0);
    const float *from = floats(params, MEMREF);
    for (int64_t i = 0; i < threads(); ++i)
        to[i] += from[i];
}

/* extend(old, new, count): elements from `count` on are one more than the last row of 256 */
static void extend(void **params) {
    const float *old = floats(params, 0);
    float *new = floats(params, MEMREF);
    for (int64_t i = 0; i < threads(); ++i)
        new[i] = i < *(int64_t *)params[2 * MEMREF] ? old[i] : old[i - 256] + 1.0f;
}

/* score(keys, values, scores) */
static void score(void **params) {
    const float *keys = floats(params, 0), *values = floats(params, MEMREF);
    float *scores = floats(params, 2 * MEMREF);
    for (int64_t i = 0; i < threads(); ++i)
        scores[i] = keys[i] + values[i];
}

/* add_up(scores, total, first) */
static void add_up(void **params) {
    const float *scores = floats(params, 0) + *(int64_t *)params[2 * MEMREF];
    float *total = floats(params, MEMREF);
    for (int64_t i = 0; i < threads(); ++i)
        total[i] += scores[i];
}

/* widen(batch, wide, count) */
static void widen(void **params) {
    const float *batch = floats(params, 0);
    float *wide = floats(params, MEMREF);
    for (int64_t i = 0; i < 4 * threads(); ++i)
        wide[i] = batch[i % threads()];
}

/* narrow(wide, batch, count) */
static void narrow(void **params) {
    const float *wide = floats(params, 0);
    float *batch = floats(params, MEMREF);
    const int64_t count = threads();
    for (int64_t i = 0; i < count; ++i)
        batch[i] =
            (wide[i] + wide[count + i] + wide[2 * count + i] + wide[3 * count + i]) / 4 + 1.0f;
}

/* count(out): counts the kernel's launches in a global of the module */
static void count(void **params) {
    *integers(params, 0) = ++*(int32_t *)hipstub_global("launches");
}

/* mark(out): writes the module's constant n to element n - 1 of `out` */
static void mark(void **params) {
    const int32_t value = *(int32_t *)hipstub_global("value");
    integers(params, 0)[value - 1] = value;
}

void hipstub_kernels(void);
void hipstub_kernels(void) {
    size_t words[4 * MEMREF];
    for (unsigned i = 0; i < 4 * MEMREF; ++i)
        words[i] = sizeof(int64_t);
    hipstub_set_kernel("increment", increment, words, MEMREF + 1);
    hipstub_set_kernel("layer", layer, words, 2 * MEMREF + 1);
    hipstub_set_kernel("join", join, words, 2 * MEMREF);
    hipstub_set_kernel("extend", extend, words, 2 * MEMREF + 1);
    hipstub_set_kernel("score", score, words, 3 * MEMREF);
    hipstub_set_kernel("add_up", add_up, words, 2 * MEMREF + 1);
    hipstub_set_kernel("widen", widen, words, 2 * MEMREF + 1);
    hipstub_set_kernel("narrow", narrow, words, 2 * MEMREF + 1);
    hipstub_set_kernel("vecadd", vecadd, words, 3 * MEMREF + 1);
    hipstub_set_kernel("sum", sum, words, 4 * MEMREF);
    hipstub_set_kernel("count", count, words, MEMREF);
    hipstub_set_kernel("mark", mark, words, MEMREF);
    words[MEMREF] = sizeof(float);
    hipstub_set_kernel("add", add, words, MEMREF + 1);
    hipstub_set_kernel("scale", scale, words, MEMREF + 1);
}
