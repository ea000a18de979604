/* Lines for the user: written to stderr, or passed to a Python thread that logs them. */
#ifndef MGPU_RT_LINES_H
#define MGPU_RT_LINES_H

#include <stddef.h>

/* the levels of Python's logging */
enum line_level { LINE_INFO = 20, LINE_WARNING = 30, LINE_ERROR = 40 };
enum { LINE = 2048 };

/* Writes a whole line, which ends with a newline. If Python has requested lines, Python logs the
 * line, and the calling thread waits until Python has logged it. In a forked child, after Python's
 * end, or if Python takes too long, the line goes to stderr. Lines of a thread that holds the GIL
 * or is logging also go to stderr. */
void line_write(enum line_level level, const char *line);

/* Writes a line as printf does. */
void line_print(enum line_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Implements mgpu_rt_lines_begin, mgpu_rt_lines_next and mgpu_rt_lines_end, which mgpu_rt_private.h
 * declares. */
int lines_begin(int (*holds_gil)(void), int patience_ms);
int lines_next(int logged, char *line, size_t size);
void lines_end(void);

/* Makes a forked child write its lines to stderr, because the child has no Python thread that logs
 * lines. */
void lines_forked(void);

#endif
