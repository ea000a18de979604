/* Prints the table of MGPU_RT_STATS=1. */
#ifndef MGPU_RT_STATISTICS_H
#define MGPU_RT_STATISTICS_H

#include <stdio.h>

/* Prints what telemetry/counters.h counts: the program's calls, the driver's calls, the launches of
 * kernels, and HIP's start. */
void statistics_print_tables(FILE *out);

#endif
