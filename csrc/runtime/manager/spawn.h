/* Starts a process that the program cannot observe. */
#ifndef MGPU_RT_SPAWN_H
#define MGPU_RT_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns the reason why spawn_detached would harm the program, or NULL. The new process would
 * become a child of process 1, or of a process that adopts orphans. In a container, process 1 may
 * wait only for its own children. The new process would then stay as a zombie when it ends. A
 * process 1 that is known to be an init waits for all. */
const char *spawn_obstacle(bool is_init_known);

/* Starts a program in a session of its own. The new process is no child of this process: its end
 * sends no SIGCHLD, and wait does not report it. It inherits no signal handler, and no descriptor
 * except TABLE_FD, which is memory of `size` bytes that both processes share. This process's table
 * of descriptors stays unchanged. Returns the memory, or NULL and errno. */
void *spawn_detached(char *const *arguments, char *const *environment, size_t size, pid_t *pid);

#endif
