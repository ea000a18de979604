/* Files that are written at exit. */
#ifndef MGPU_RT_OUTPUT_H
#define MGPU_RT_OUTPUT_H

#include <stdio.h>

/* Opens a file that an option names, with %p in it as the process id, and closes it. What fails is
 * said with the variable's name; then output_open returns NULL. */
FILE *output_open(const char *variable, const char *pattern);
void output_close(const char *variable, const char *pattern, FILE *file);

#endif
