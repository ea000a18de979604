/* Provides the id of this process, and its rank according to MPI's launcher. */
#ifndef MGPU_RT_PROCESS_H
#define MGPU_RT_PROCESS_H

#include "telemetry/counters.h"

/* Returns the rank; -1 if no launcher has set a rank. */
int process_rank(void);

/* Returns a field of /proc/ID/stat of a process, from field 4 on; 0 if there is no such field. */
enum { PROCESS_THREADS = 20, PROCESS_STARTED = 22 };
unsigned long long process_field(long process, int field);

/* Describes this process at this time. */
struct process process_now(void);

#endif
