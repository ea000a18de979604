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
    pid_t pid; /* ID of the new process, by which the library checks whether the process runs */
    int error; /* errno, if no process was started */
};

/* Starts a program as a separate process. The new process is not a child of the calling process.
 * When the new process ends, the caller gets no SIGCHLD, and wait reports nothing. The new process
 * has its own session and a lower priority than the calling process. The new process inherits no
 * signal handler, and no descriptor except CHANNEL_FD for the shared memory. The calling process's
 * table of descriptors stays unchanged. Returns false if the program cannot be started. */
int spawn_detached(struct spawn *spawn);

#endif
