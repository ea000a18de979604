/* Declares the mgpu* functions of abi.def for programs that know handles only as `void *`, as
 * lowered programs do. */
#ifndef SELFTEST_ABI_H
#define SELFTEST_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *hipModule_t, *hipFunction_t, *hipStream_t, *hipEvent_t;

struct mgpu_memref {
    char *allocated, *aligned;
    int64_t offset, sizes_and_strides[];
};
struct mgpu_memref_float {
    float *allocated, *aligned;
    int64_t offset, size, stride;
};
struct mgpu_memref_int32 {
    int32_t *allocated, *aligned;
    int64_t offset, size, stride;
};
struct mgpu_elapsed {
    float milliseconds;
    int64_t error;
};

#define MGPU_FN(result, name, params, args, first, last, ...) result name params;
#include "../../abi.def"

#endif
