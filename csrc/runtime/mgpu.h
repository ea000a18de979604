/* The ABI: the types that the exported functions use, and a prototype for each function of abi.def.
 */
#ifndef MGPU_RT_MGPU_H
#define MGPU_RT_MGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library returns HIP's own handles to the program, so that the program can mix mgpu* calls
 * with HIP calls. */
#include "../hip_abi.h"

/* HIP's releases, as hipRuntimeGetVersion numbers them: 50221153 is 5.2.3. */
enum {
    HIP_5_3 = 50300000,
    HIP_5_7 = 50700000,
    HIP_6_0 = 60000000,
    HIP_6_3 = 60300000,
    HIP_6_4 = 60400000,
    HIP_7 = 70000000
};

/* The head of a memref descriptor; sizes[rank] and strides[rank] follow. */
struct mgpu_memref {
    char *allocated;
    char *aligned;
    int64_t offset;
    int64_t sizes_and_strides[];
};

/* Descriptors of rank 1, returned by value (in memory that the caller provides). */
struct mgpu_memref_float {
    float *allocated, *aligned;
    int64_t offset, size, stride;
};

struct mgpu_memref_int32 {
    int32_t *allocated, *aligned;
    int64_t offset, size, stride;
};

/* milliseconds is returned in xmm0, error in rax: a caller of mgpuEventElapsedTime reads only one
 * of the two registers. */
struct mgpu_elapsed {
    float milliseconds;
    int64_t error; /* hipError_t */
};

/* The index of each function, in the order of abi.def, for the statistics' counters. */
enum abi_index {
#define MGPU_FN(result, name, params, args, first, last, ...) ABI_##name,
#define MGPU_VOID(name, params, args, first, last, ...) ABI_##name,
#include "../abi.def"
#undef MGPU_FN
#undef MGPU_VOID
    ABI_COUNT
};

/* The exported functions, and the implementation of each, named impl_<name>. told_<name> serves the
 * slow entry, and also records how the call was served (telemetry/call.h). */
#define MGPU_FN(result, name, params, args, first, last, ...)                                      \
    result name params;                                                                            \
    result impl_##name params;                                                                     \
    result told_##name params;
#define MGPU_VOID(name, params, args, first, last, ...)                                            \
    MGPU_FN(void, name, params, args, first, last, __VA_ARGS__)
#include "../abi.def"
#undef MGPU_FN
#undef MGPU_VOID

#endif
