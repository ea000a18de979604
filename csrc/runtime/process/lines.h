/* Texts of bounded size, and lines for the user on stderr. */
#ifndef MGPU_RT_LINES_H
#define MGPU_RT_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE = 2048 };

/* Writes a line as printf does. The line is composed before it is written, so that lines of several
 * threads do not mix. */
void line_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends to a text as printf does. Returns false, and leaves the text unchanged, if the result
 * needs more than `size` bytes. */
bool text_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
