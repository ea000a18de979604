/* Texts of bounded size, and lines for the user on stderr. */
#ifndef MGPU_RT_LINES_H
#define MGPU_RT_LINES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum { LINE = 2048 };

/* Writes a line to stderr: a prefix, and a text as printf writes it. Names of images, kernels and
 * files may contain codes that control a terminal, so each control character becomes '?'. A line is
 * composed before it is written, so that lines of several threads do not mix. From glibc 2.37 on,
 * fprintf writes to stderr in pieces of 128 bytes. */
void line_write(const char *prefix, const char *format, va_list words);

/* Writes a line that begins with "mgpu_rt: ". */
void line_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Replaces the control characters of a text. */
void line_clean(char *text);

/* Appends to a text as printf does. Returns false, and leaves the text unchanged, if the result
 * needs more than `size` bytes. */
bool text_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
