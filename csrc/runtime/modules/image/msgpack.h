/* Reads the part of MessagePack that a code object's metadata uses. */
#ifndef MGPU_RT_MSGPACK_H
#define MGPU_RT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that are still to be read. Each function below removes the next value from these bytes.
 * If the next value is of another kind or incomplete, the function returns false and removes
 * nothing. */
struct msgpack {
    const unsigned char *at, *end;
};

/* Reads the number of key-value pairs that follow. */
bool msgpack_map(struct msgpack *rest, uint32_t *pairs);
/* Reads the number of values that follow. */
bool msgpack_array(struct msgpack *rest, uint32_t *values);
/* Reads the position of a text, which is not terminated. */
bool msgpack_text(struct msgpack *rest, const char **text, size_t *length);
/* Reads an unsigned number. */
bool msgpack_number(struct msgpack *rest, uint64_t *number);
/* Skips any value, including all values in it. */
bool msgpack_skip(struct msgpack *rest);

#endif
