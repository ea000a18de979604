/* Lines for the user, on stderr. */
#ifndef MGPU_RT_LINES_H
#define MGPU_RT_LINES_H

enum { LINE = 2048 };

/* Writes a line as printf does. The line is composed before it is written, so that lines of several
 * threads do not mix. */
void line_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
