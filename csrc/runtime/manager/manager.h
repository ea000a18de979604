/* The manager: a Python process that is told what the caches do and decides what stays cached.
 *
 * docs/decisions.md tells why it is a process and not a thread of this one. No call of the program
 * waits for the manager, and no Python is in this process. */
#ifndef MGPU_RT_MANAGER_H
#define MGPU_RT_MANAGER_H

#include <stdbool.h>

/* Reads which Python may run the manager, once HIP was opened. Starts the manager where the user
 * named a policy or a delay. Later calls do nothing. */
void manager_prepare(void);

/* Starts the thread that starts the manager, if that was prepared: limit_reached of
 * process/state.h. Costs 30 µs once; later calls do nothing. */
void manager_start(void);

/* Stops the manager before HIP ends. Waits for one call of the driver's at most, and never for
 * Python. */
void manager_stop(void);

/* Forgets the manager in a child of fork, which has none. */
void manager_forked(void);

/* For the statistics. */
enum manager_state { MANAGER_NONE, MANAGER_STARTING, MANAGER_SERVING, MANAGER_ENDED };
enum manager_state manager_state(void);

#endif
