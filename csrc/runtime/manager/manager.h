/* The manager is a Python process that receives the caches' events and decides what stays cached.
 *
 * docs/how-it-works.md explains why the manager is a process and not a thread of the program's
 * process. No call of the program waits for the manager, and no Python of the manager runs in the
 * program's process. */
#ifndef MGPU_RT_MANAGER_H
#define MGPU_RT_MANAGER_H

#include <stdbool.h>

/* Reads the environment variables by which the library finds Python; called once HIP is open.
 * Starts the manager if the user named a policy or a delay. Later calls do nothing. */
void manager_prepare(void);

/* Starts the thread that starts the manager, if manager_prepare has read the environment. A cache
 * that reaches its limit calls this function through limit_reached (process/state.h). The first
 * call costs 30 µs; later calls do nothing. */
void manager_start(void);

/* Stops the manager before HIP ends. Waits until the thread has answered one request of the
 * manager, and then at most 50 ms until the thread ends. Never waits for Python. */
void manager_stop(void);

/* Clears the manager's state in a forked child, which has no manager. */
void manager_forked(void);

/* The manager's state, for the statistics. */
enum manager_state { MANAGER_NONE, MANAGER_STARTING, MANAGER_SERVING, MANAGER_ENDED };
enum manager_state manager_state(void);

#endif
