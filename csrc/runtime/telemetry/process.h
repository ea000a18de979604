/* Which process this is, and which of a program's, as the launcher of MPI has numbered them. */
#ifndef MGPU_RT_PROCESS_H
#define MGPU_RT_PROCESS_H

#include "telemetry/counters.h"

/* Returns the rank; -1 if no launcher has said so. */
int process_rank(void);

/* A field of what the kernel says of a process in /proc/ID/stat, from 4 on; 0 if there is none. */
enum { PROCESS_THREADS = 20, PROCESS_STARTED = 22 };
unsigned long long process_field(long process, int field);

/* Describes this process, from now on. */
struct process process_now(void);

#endif
