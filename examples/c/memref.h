/* A memref<?xf32>, whose address a function with llvm.emit_c_interface receives. MLIR's own header
 * of memrefs (CRunnerUtils.h) is C++. */
#ifndef MEMREF_H
#define MEMREF_H

#include <stdint.h>

struct memref {
    float *allocated, *aligned; /* the pointers differ only if the allocator aligned the memory */
    intptr_t offset, size, stride;
};

static inline struct memref memref_of(float *numbers, intptr_t count) {
    struct memref memref = {numbers, numbers, 0, count, 1};
    return memref;
}

#endif
