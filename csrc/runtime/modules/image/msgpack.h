/* A reader of MessagePack, which a code object's metadata is written in: what is needed of it. */
#ifndef MGPU_RT_MSGPACK_H
#define MGPU_RT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that are left to be read. Each function below takes the next value off it. False if the
 * next value is of another kind or not whole, and then nothing is taken. */
struct msgpack {
    const unsigned char *at, *end;
};

/* Reads the number of pairs, of keys and values, that follow. */
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
