/* What the statistics print; the counting is declared in runtime.h. */
#ifndef MGPU_RT_STATS_H
#define MGPU_RT_STATS_H

/* MGPU_RT_STATS: a table on stderr, or JSON at a path. At most once a process. */
void stats_write(const char *destination);

/* A child of fork counts from 0. */
void stats_reset(void);

#endif
