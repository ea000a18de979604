#include "modules/image/msgpack.h"

/* The first byte of a value gives the value's kind. The first byte of a short value also contains
 * the length or the number. */
enum {
    FIXMAP = 0x80,
    FIXARRAY = 0x90,
    FIXTEXT = 0xa0,
    NIL = 0xc0,
    BINARY_8 = 0xc4, /* the kinds with lengths of 1, 2 and 4 bytes have consecutive numbers, as do
                      * the kinds below */
    EXTENSION_8 = 0xc7,
    FLOAT_32 = 0xca,
    FLOAT_64 = 0xcb,
    NUMBER_8 = 0xcc,
    NUMBER_64 = 0xcf,
    INTEGER_8 = 0xd0,
    FIXEXTENSION_1 = 0xd4,
    TEXT_8 = 0xd9,
    ARRAY_16 = 0xdc,
    MAP_16 = 0xde,
    NEGATIVE = 0xe0,
};

static size_t left(const struct msgpack *rest) {
    return (size_t)(rest->end - rest->at);
}

/* Reads a number that takes `bytes` bytes after the first byte. Removes the first byte and the
 * number from `rest`. */
static bool take_number(struct msgpack *rest, size_t bytes, uint64_t *number) {
    if (left(rest) < 1 + bytes)
        return false;
    *number = 0;
    for (size_t i = 1; i <= bytes; i++)
        *number = *number << 8 | rest->at[i];
    rest->at += 1 + bytes;
    return true;
}

/* Reads the count of a map or an array. The lower half of the first byte contains a small count; 2
 * or 4 bytes after the first byte contain a larger count. */
static bool take_count(struct msgpack *rest, unsigned fixed, unsigned wide, uint32_t *count) {
    uint64_t number;
    if (left(rest) == 0)
        return false;
    const unsigned first = rest->at[0];
    if ((first & 0xf0) == fixed) {
        rest->at++;
        *count = first & 0x0f;
        return true;
    }
    if ((first != wide && first != wide + 1) || !take_number(rest, first == wide ? 2 : 4, &number))
        return false;
    *count = (uint32_t)number;
    return true;
}

bool msgpack_map(struct msgpack *rest, uint32_t *pairs) {
    return take_count(rest, FIXMAP, MAP_16, pairs);
}

bool msgpack_array(struct msgpack *rest, uint32_t *values) {
    return take_count(rest, FIXARRAY, ARRAY_16, values);
}

/* Reads a value that consists of a count and that many bytes. The count takes 1 byte if the first
 * byte is `first_kind`. For the next two values of the first byte, the count takes 2 and 4 bytes.
 */
static bool take_bytes(struct msgpack *rest, unsigned first_kind, size_t extra, size_t *length) {
    struct msgpack after = *rest;
    uint64_t number;
    if (!take_number(&after, (size_t)1 << (rest->at[0] - first_kind), &number) ||
        number + extra > left(&after))
        return false;
    *length = number + extra;
    rest->at = after.at + *length;
    return true;
}

bool msgpack_text(struct msgpack *rest, const char **text, size_t *length) {
    if (left(rest) == 0)
        return false;
    const unsigned first = rest->at[0];
    if ((first & 0xe0) == FIXTEXT) {
        *length = first & 0x1f;
        if (left(rest) - 1 < *length)
            return false;
        rest->at += 1 + *length;
    } else if (first < TEXT_8 || first >= ARRAY_16 || !take_bytes(rest, TEXT_8, 0, length)) {
        return false;
    }
    *text = (const char *)rest->at - *length;
    return true;
}

bool msgpack_number(struct msgpack *rest, uint64_t *number) {
    if (left(rest) == 0)
        return false;
    const unsigned first = rest->at[0];
    if (first < FIXMAP) {
        *number = first;
        rest->at++;
        return true;
    }
    return first >= NUMBER_8 && first <= NUMBER_64 &&
           take_number(rest, (size_t)1 << (first - NUMBER_8), number);
}

/* Skips a value that contains no other values. */
static bool skip_plain(struct msgpack *rest) {
    const unsigned first = rest->at[0];
    uint64_t number;
    size_t length;
    const char *text;
    if (first < FIXMAP || first >= NEGATIVE || (first >= NIL && first < BINARY_8))
        return take_number(rest, 0, &number);
    if (first < EXTENSION_8)
        return first >= BINARY_8 ? take_bytes(rest, BINARY_8, 0, &length)
                                 : msgpack_text(rest, &text, &length);
    if (first < FLOAT_32)
        return take_bytes(rest, EXTENSION_8, 1, &length);
    if (first <= FLOAT_64)
        return take_number(rest, first == FLOAT_32 ? 4 : 8, &number);
    if (first < INTEGER_8)
        return msgpack_number(rest, &number);
    if (first < FIXEXTENSION_1)
        return take_number(rest, (size_t)1 << (first - INTEGER_8), &number);
    if (first < TEXT_8)
        return take_number(rest, ((size_t)1 << (first - FIXEXTENSION_1)) + 1, &number);
    return msgpack_text(rest, &text, &length);
}

bool msgpack_skip(struct msgpack *rest) {
    struct msgpack after = *rest;
    uint32_t count;
    for (uint64_t values = 1; values > 0; values--) {
        if (left(&after) == 0)
            return false;
        if (msgpack_map(&after, &count))
            values += 2 * (uint64_t)count;
        else if (msgpack_array(&after, &count))
            values += count;
        else if (!skip_plain(&after))
            return false;
    }
    *rest = after;
    return true;
}
