/* The ABI: declares the types and the prototypes of the functions in abi.def. */
#ifndef MGPU_RT_MGPU_H
#define MGPU_RT_MGPU_H

#include <stdbool.h>

/* The library returns HIP's own handles to the program, so that the program can mix mgpu* calls
 * with HIP calls. */
#include "../hip_abi.h"

/* The numbers of HIP's releases, as hipRuntimeGetVersion returns them; for example, 50221153 is HIP
 * 5.2.3. */
enum {
    HIP_5_3 = 50300000,
    HIP_5_7 = 50700000,
    HIP_6_0 = 60000000,
    HIP_6_3 = 60300000,
    HIP_6_4 = 60400000,
    HIP_7 = 70000000
};

/* The first members of a memref descriptor. The arrays sizes[rank] and strides[rank] follow these
 * members. */
struct mgpu_memref {
    char *allocated;
    char *aligned;
    int64_t offset;
    int64_t sizes_and_strides[];
};

static inline char *memref_first(const struct mgpu_memref *memref, int64_t element_bytes) {
    return memref->aligned + memref->offset * element_bytes;
}

/* Returns the bytes of a memref's elements, without gaps between them. */
static inline uint64_t memref_bytes(int64_t rank, const struct mgpu_memref *memref,
                                    int64_t element_bytes) {
    int64_t bytes = element_bytes;
    for (int64_t i = 0; i < rank; i++)
        bytes *= memref->sizes_and_strides[i];
    return (uint64_t)bytes;
}

/* Descriptors of rank 1, returned by value (in memory that the caller provides). */
struct mgpu_memref_float {
    float *allocated, *aligned;
    int64_t offset, size, stride;
};

struct mgpu_memref_int32 {
    int32_t *allocated, *aligned;
    int64_t offset, size, stride;
};

/* The function returns `milliseconds` in the register xmm0 and `error` in the register rax. Each
 * caller of mgpuEventElapsedTime reads only one of the two registers. */
struct mgpu_elapsed {
    float milliseconds;
    int64_t error; /* hipError_t */
};

/* The indexes of the functions in the statistics' counters, in the order of abi.def. */
enum abi_index {
#define MGPU_FN(result, name, params, args, first, last, ...) ABI_##name,
#include "../abi.def"
    ABI_COUNT
};

/* Each exported function <name> has the implementation impl_<name>. */
#define MGPU_FN(result, name, params, args, first, last, ...)                                      \
    result name params;                                                                            \
    result impl_##name params;
#include "../abi.def"

#endif
