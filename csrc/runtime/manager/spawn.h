/* Starts a process that the program cannot observe. */
#ifndef MGPU_RT_SPAWN_H
#define MGPU_RT_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

/* Returns the reason why spawn_detached would harm the program, or NULL. If the program adopts
 * orphans, the new process would become its child. */
const char *spawn_obstacle(void);

/* Starts a program in a session of its own. The new process is no child of this process: its end
 * sends no SIGCHLD, and wait does not report it. It inherits no signal handler, and no descriptor
 * except TABLE_FD, which is memory of `size` bytes that both processes share. This process's table
 * of descriptors stays unchanged. Returns the memory, or NULL and errno. */
void *spawn_detached(char *const *arguments, char *const *environment, size_t size, pid_t *pid);

#endif
