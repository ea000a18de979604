/* Starts a process that the program cannot notice. */
#ifndef MGPU_RT_SPAWN_H
#define MGPU_RT_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct spawn {
    const char *path;
    char *const *arguments, *const *environment;
    size_t size; /* of the memory that both sides share */
    void *memory;
    pid_t pid; /* of the new process; to ask whether it is still there */
    int error; /* errno, if there is none */
};

/* Runs a program beside this one. The program is no child of this process (no SIGCHLD, nothing for
 * wait) and has its own session. The program has none of the descriptors but CHANNEL_FD, the shared
 * memory, none of the signal handlers, and a lower priority. This process's table of descriptors is
 * not touched, not even for a moment. Returns false if it cannot be started. */
int spawn_detached(struct spawn *spawn);

#endif
