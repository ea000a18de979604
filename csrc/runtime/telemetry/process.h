/* The id of this process, and its rank as the launcher of MPI has numbered it. */
#ifndef MGPU_RT_PROCESS_H
#define MGPU_RT_PROCESS_H

#include "telemetry/counters.h"

/* Returns the rank; -1 if no launcher has set one. */
int process_rank(void);

/* Returns a field of /proc/ID/stat for a process, from 4 on; 0 if there is none. */
enum { PROCESS_THREADS = 20, PROCESS_STARTED = 22 };
unsigned long long process_field(long process, int field);

/* Describes this process at this time. */
struct process process_now(void);

#endif
