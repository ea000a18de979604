/* The manager is a Python process that decides what stays cached.
 *
 * docs/how-it-works.md explains why the manager is a process and not a thread of the program's
 * process. No call of the program waits for the manager, and no Python of the manager runs in the
 * program's process. */
#ifndef MGPU_RT_MANAGER_H
#define MGPU_RT_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts the manager if the user named a policy or a delay. Called by each first call, once HIP is
 * open. */
void manager_prepare(void);

/* Starts the manager, or requests its next turn. A cache that reaches its limit calls this function
 * through limit_reached (process/state.h). The first call costs 30 µs. */
void manager_start(void);

/* Stops the manager before HIP ends, and waits until the thread's current call of HIP has returned.
 * Never waits for Python. */
void manager_stop(void);

/* ---- spawn.c: starts a process that the program cannot observe ---- */

struct spawned {
    char *const *arguments, *const *environment;
    size_t size;  /* of the memory that both processes share */
    void *memory; /* set by spawn_detached, as the other members below */
    pid_t pid;
    int error;
};

/* Starts a program in a session of its own. The new process is no child of this process: its end
 * sends no SIGCHLD, and wait does not report it. It inherits no signal handler, and no descriptor
 * except TABLE_FD, which is the shared memory. This process's table of descriptors stays unchanged.
 * Returns NULL, or the reason why the program was not started. Call it once. */
const char *spawn_detached(struct spawned *spawned);

/* Returns whether a process that spawn_detached has started still runs. */
bool spawned_runs(pid_t process);

#endif
