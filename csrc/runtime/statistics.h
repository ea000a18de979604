/* What the statistics print, and files that are written at exit; the counting is declared in
 * runtime.h. */
#ifndef MGPU_RT_STATS_H
#define MGPU_RT_STATS_H

#include <stdio.h>

/* MGPU_RT_STATS: a table on stderr, or JSON at a path. At most once a process. */
void stats_write(const char *destination);

/* A child of fork counts from 0. */
void stats_reset(void);

/* Opens a file that an option names, with %p in it as the process id, and closes it. What fails is
 * said with the variable's name; then stats_open returns NULL. */
FILE *stats_open(const char *variable, const char *pattern);
void stats_close(const char *variable, const char *pattern, FILE *file);

#endif
