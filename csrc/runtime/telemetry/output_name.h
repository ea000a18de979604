/* The names of a process's files. */
#ifndef MGPU_RT_OUTPUT_NAME_H
#define MGPU_RT_OUTPUT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The path that a pattern names, absolute. */
void output_name(char *path, size_t size, const char *pattern, bool forked);

/* Puts `word` before the ending of a path: stats.json, 2: stats.2.json. False if it is too long. */
bool output_name_insert(char *path, size_t size, const char *word);

#endif
