/* A reader for the part of MessagePack that a code object's metadata uses. */
#ifndef MGPU_RT_MSGPACK_H
#define MGPU_RT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that are left to be read. Each function below takes the next value off these bytes.
 * Each returns false if the next value is of another kind or not whole, and then takes nothing. */
struct msgpack {
    const unsigned char *at, *end;
};

/* Reads the number of the pairs, of key and value, that follow. */
bool msgpack_map(struct msgpack *rest, uint32_t *pairs);
/* Reads the number of values that follow. */
bool msgpack_array(struct msgpack *rest, uint32_t *values);
/* Reads the place of a text; it is not terminated. */
bool msgpack_text(struct msgpack *rest, const char **text, size_t *length);
/* Reads a number from 0 on. */
bool msgpack_number(struct msgpack *rest, uint64_t *number);
/* Skips any value, with all that is in it. */
bool msgpack_skip(struct msgpack *rest);

#endif
