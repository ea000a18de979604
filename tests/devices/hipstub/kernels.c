/* Kernel bodies for HIPSTUB_KERNELS. With these bodies, bench/programs print the right results on
 * the stub. One call of a body does the work of the whole grid. */
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
    hipstub_set_kernel("vecadd", vecadd, words, 3 * MEMREF + 1);
    hipstub_set_kernel("sum", sum, words, 4 * MEMREF);
    hipstub_set_kernel("count", count, words, MEMREF);
    hipstub_set_kernel("mark", mark, words, MEMREF);
    words[MEMREF] = sizeof(float);
    hipstub_set_kernel("add", add, words, MEMREF + 1);
}
