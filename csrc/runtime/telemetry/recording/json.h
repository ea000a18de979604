/* Functions that write JSON. */
#ifndef MGPU_RT_JSON_H
#define MGPU_RT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a text in its quotes: what is no UTF-8 becomes "?". */
void json_text(FILE *out, const char *text);

/* Returns what stands between members: ", " before all but the first. */
const char *json_separator(bool *first);

/* Prints an object of counts, {"calls": 1, "bytes": 2}: `values` are as many as the names, which
 * end with NULL. */
void json_counts(FILE *out, const char *const names[], const uint64_t *values);

#endif
