/* Prints the statistics that telemetry/counters.h counts. */
#ifndef MGPU_RT_STATISTICS_H
#define MGPU_RT_STATISTICS_H

#include "telemetry/counters.h"

#include <stdio.h>

/* Writes HIP's release in AMD's form ("5.2.21153") into `text`, and returns `text`. */
enum { STATISTICS_RELEASE = 48 };
const char *statistics_release(int64_t version, char text[STATISTICS_RELEASE]);

/* Prints tables of the program's calls, the driver's calls, the launches of kernels, and HIP's
 * start. The JSON contains the text of these tables as "rendered", so `mgpu-rt stats` shows the
 * tables that the library prints at exit. */
void statistics_print_tables(FILE *out, const struct counts *record);

/* Prints JSON without a final newline, for this process or for a process that has left a recording.
 */
void statistics_print(FILE *out);
void statistics_print_record(FILE *out, const struct counts *record);

/* Returns the statistics so far as JSON, as mgpu_rt_stats_json does. */
char *statistics_json(void);

#endif
