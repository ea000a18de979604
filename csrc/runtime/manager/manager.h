/* The manager is a Python process that decides what stays cached.
 *
 * docs/how-it-works.md explains why the manager is a process and not a thread of the program's
 * process. No call of the program waits for the manager, and no Python of the manager runs in the
 * program's process. */
#ifndef MGPU_RT_MANAGER_H
#define MGPU_RT_MANAGER_H

/* Starts the manager if the user named a policy or a delay. Called by each first call, once HIP is
 * open. */
void manager_prepare(void);

/* Starts the manager, or requests its next turn. A cache that reaches its limit calls this function
 * through limit_reached (process/state.h). The first call costs 30 µs. */
void manager_start(void);

/* Stops the manager before HIP ends, and waits until the thread's current call of HIP has returned.
 * Never waits for Python. */
void manager_stop(void);

/* Clears the manager's state in a forked child, which has no manager. */
void manager_forked(void);

/* The manager's state, for the statistics. */
enum manager_state { MANAGER_NONE, MANAGER_STARTING, MANAGER_SERVING, MANAGER_ENDED };
enum manager_state manager_state(void);

#endif
