/* What the statistics print; base/counters.h counts. */
#ifndef MGPU_RT_STATISTICS_H
#define MGPU_RT_STATISTICS_H

#include "base/counters.h"

#include <stdio.h>

/* For people: the calls of the program and of the driver, and the launches of kernels. */
void statistics_print_tables(FILE *out);

/* JSON, without a line's end: of this process, and of one that has left a recording. */
void statistics_print(FILE *out);
void statistics_print_record(FILE *out, const struct counts *record);

#endif
