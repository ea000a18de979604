/* What the statistics print; base/counters.h counts. */
#ifndef MGPU_RT_STATISTICS_H
#define MGPU_RT_STATISTICS_H

/* MGPU_RT_STATS: a table on stderr, or JSON at a path. At most once a process. */
void statistics_write(const char *destination);

#endif
