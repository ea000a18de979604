/* A copy of a fuzzer's input that ends at the end of readable memory: one byte too many ends the
 * process. */
#ifndef MGPU_RT_FUZZ_EDGE_H
#define MGPU_RT_FUZZ_EDGE_H

#include <stddef.h>
#include <stdint.h>

enum { EDGE_ROOM = 1 << 16 }; /* of longer inputs only the begin is used */

/* Returns a copy of the bytes at the edge of readable memory, valid until the next call. */
const unsigned char *edge_copy(const uint8_t *data, size_t *size);

/* Returns a copy of the bytes as a text, with a 0 after it. The caller frees the text. */
char *edge_text(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with a message if a property does not hold, in any build. */
#define HOLDS(property)                                                                            \
    do {                                                                                           \
        if (!(property))                                                                           \
            __builtin_trap();                                                                      \
    } while (0)

#endif
