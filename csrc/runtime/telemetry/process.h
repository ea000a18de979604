/* Provides the id of this process, and its rank according to MPI's launcher. */
#ifndef MGPU_RT_PROCESS_H
#define MGPU_RT_PROCESS_H

#include "telemetry/counters.h"

/* Returns the rank; -1 if no launcher has set a rank. */
int process_rank(void);

/* Returns how many threads the process has; 0 if this is unknown. A main thread that has ended
 * counts. */
size_t process_threads(void);

/* Returns true if the program's main thread has called pthread_exit. The process then ends when all
 * other threads have ended, so the library's threads must end too. */
bool process_main_has_ended(void);

/* Returns a description of this process, with the current time as `begin` and `date`. */
struct process process_now(void);

#endif
