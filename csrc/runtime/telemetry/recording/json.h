/* Functions that write JSON. */
#ifndef MGPU_RT_JSON_H
#define MGPU_RT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a text in quotes; bytes that are not UTF-8 become "?". */
void json_text(FILE *out, const char *text);

/* Returns the separator between members: ", ", or nothing before the first member. */
const char *json_separator(bool *first);

/* Prints an object of counts, {"calls": 1, "bytes": 2}: `names` ends with NULL, and `values` has
 * one value for each name. */
void json_counts(FILE *out, const char *const names[], const uint64_t *values);

#endif
