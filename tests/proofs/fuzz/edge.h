/* Copies a fuzzer's input to the end of readable memory, so that reading one more byte crashes. */
#ifndef MGPU_RT_FUZZ_EDGE_H
#define MGPU_RT_FUZZ_EDGE_H

#include <stddef.h>
#include <stdint.h>

enum { EDGE_ROOM = 1 << 16 }; /* longer inputs are truncated to this size */

/* Returns a copy that ends at the edge of readable memory and is valid until the next call. */
const unsigned char *edge_copy(const uint8_t *data, size_t *size);

/* Returns a copy of the bytes as a string with a terminating 0. The caller frees the string. */
char *edge_text(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Traps if a property is false, even in builds with NDEBUG. */
#define HOLDS(property)                                                                            \
    do {                                                                                           \
        if (!(property))                                                                           \
            __builtin_trap();                                                                      \
    } while (0)

#endif
