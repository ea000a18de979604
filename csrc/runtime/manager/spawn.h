/* Starts a process that the program cannot observe. */
#ifndef MGPU_RT_SPAWN_H
#define MGPU_RT_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns true if the new process would become a child of this process, because this process is
 * process 1 or adopts orphans. */
bool spawn_is_adopter(void);

/* Returns true if the machine's init waits for the new process when it ends. In a container,
 * process 1 may wait only for its own children, and the new process would stay as a zombie. */
bool spawn_has_init(void);

/* Starts a program in a session of its own. The new process is no child of this process: its end
 * sends no SIGCHLD, and wait does not report it. It inherits no signal handler, and no descriptor
 * except TABLE_FD, which is memory of `size` bytes that both processes share. This process's table
 * of descriptors stays unchanged. Returns the memory, or NULL and errno. */
void *spawn_detached(char *const *arguments, char *const *environment, size_t size, pid_t *pid);

#endif
