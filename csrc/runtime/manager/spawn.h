/* Starts a process that the program cannot observe. */
#ifndef MGPU_RT_SPAWN_H
#define MGPU_RT_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct spawn {
    const char *path;
    char *const *arguments, *const *environment;
    size_t size; /* size of the memory that the program and the new process share */
    void *memory;
    pid_t pid; /* id of the new process; shows whether the process still runs */
    int error; /* errno, if no process was started */
};

/* Starts a program as a separate process. The program is no child of this process (no SIGCHLD,
 * nothing for wait) and has its own session. The program inherits no signal handler, and no
 * descriptor except CHANNEL_FD, the shared memory. The program has a lower priority. Starting a
 * program never changes this process's table of descriptors. Returns false if the program cannot be
 * started. */
int spawn_detached(struct spawn *spawn);

#endif
