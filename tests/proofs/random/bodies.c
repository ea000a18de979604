/* Bodies of the kernels in the images, for the stub of HIP (HIPSTUB_KERNELS). */
#include "../../devices/hipstub/hipstub.h"

enum { MEMREF = 5, ALIGNED = 1 };

static uint32_t *words(void **params, unsigned first) {
    return *(uint32_t **)params[first + ALIGNED];
}

static uint32_t value(void) {
    return *(uint32_t *)hipstub_global("value");
}

static void mix(void **params) {
    uint32_t *data = words(params, 0);
    const uint32_t k = *(uint32_t *)params[MEMREF + 1], add = value();
    for (int64_t i = 0; i < *(int64_t *)params[MEMREF]; ++i)
        data[i] = 3 * data[i] + k + add;
}

static void copy(void **params) {
    uint32_t *to = words(params, 0);
    const uint32_t *from = words(params, MEMREF), add = value();
    for (int64_t i = 0; i < *(int64_t *)params[2 * MEMREF]; ++i)
        to[i] = from[i] + add;
}

static void bump(void **params) {
    uint32_t *cell = hipstub_global("cell");
    *words(params, 0) = *cell = 3 * *cell + value();
}

static void where(void **params) {
    const uint64_t address = (uintptr_t)hipstub_global("cell");
    words(params, 0)[0] = (uint32_t)address;
    words(params, 0)[1] = (uint32_t)(address >> 32);
}

void hipstub_kernels(void);
void hipstub_kernels(void) {
    size_t sizes[2 * MEMREF + 1];
    for (unsigned i = 0; i < 2 * MEMREF + 1; ++i)
        sizes[i] = sizeof(int64_t);
    hipstub_set_kernel("copy", copy, sizes, 2 * MEMREF + 1);
    hipstub_set_kernel("bump", bump, sizes, MEMREF);
    hipstub_set_kernel("where", where, sizes, MEMREF);
    sizes[MEMREF + 1] = sizeof(int32_t);
    hipstub_set_kernel("mix", mix, sizes, MEMREF + 2);
    hipstub_set_kernel("slow", mix, sizes, MEMREF + 2);
}
