/* Which process this is, and which of a program's, as the launcher of MPI has numbered them. */
#ifndef MGPU_RT_PROCESS_H
#define MGPU_RT_PROCESS_H

#include "telemetry/counters.h"

/* -1 if no launcher has said so. */
int process_rank(void);

/* This one, from now on. */
struct process process_now(void);

#endif
