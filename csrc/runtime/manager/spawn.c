/* posix_spawn from a clone of the process.
 *
 * The clone has exit signal 0: its end sends no signal, and the program's wait does not report it.
 * When the clone has ended, init becomes the parent of the process that the clone has spawned. The
 * clone shares the program's memory, but has its own table of descriptors. The calling thread is
 * suspended while the clone runs (CLONE_VFORK). The clone runs no handlers of pthread_atfork, and
 * the kernel copies no page tables, so the clone is safe with MPI libraries that forbid fork. */
#include "manager/manager.h"
#include "manager/table.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { STACK = 64 << 10, MOST_DESCRIPTORS = 1 << 16 };
#define NEVER_RUN 8U /* MFD_NOEXEC_SEAL, unknown before Linux 6.3; later kernels may require it */

static bool adopts_orphans(void) {
    int adopts = 0;
    return getpid() == 1 || prctl(PR_GET_CHILD_SUBREAPER, &adopts) != 0 || adopts;
}

/* Before Linux 5.9 there is no close_range. */
static void close_all(void) {
    if (syscall(SYS_close_range, 0U, ~0U, 0U) != 0)
        for (int fd = 0; fd < MOST_DESCRIPTORS; fd++)
            close(fd);
}

/* Connects descriptors 0 to 2 to /dev/null, and TABLE_FD to the memory. */
static bool arrange_descriptors(struct spawned *spawned) {
    close_all();
    if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
        return false;
    if (syscall(SYS_memfd_create, "mgpu_rt", NEVER_RUN) == -1)
        (void)syscall(SYS_memfd_create, "mgpu_rt", 0U);
    if (ftruncate(TABLE_FD, (off_t)spawned->size) != 0)
        return false;
    spawned->memory = mmap(NULL, spawned->size, PROT_READ | PROT_WRITE, MAP_SHARED, TABLE_FD, 0);
    return spawned->memory != MAP_FAILED;
}

static int run_clone(void *argument) {
    struct spawned *spawned = argument;
    posix_spawnattr_t how;
    sigset_t all, none;
    if (!arrange_descriptors(spawned)) {
        spawned->error = errno;
        _exit(0);
    }
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, &none);
    spawned->error = posix_spawn(&spawned->pid, spawned->arguments[0], NULL, &how,
                                 spawned->arguments, spawned->environment);
    _exit(0);
}

const char *spawn_detached(struct spawned *spawned) {
    static char stack[STACK] __attribute__((aligned(16))), reason[64];
    if (adopts_orphans())
        return "this process adopts orphans, so that the manager would be its child: run it under "
               "an init of its own, as docker run --init does";
    spawned->memory = MAP_FAILED;
    spawned->error = ENOSYS; /* until the clone sets it */
    const pid_t first = clone(run_clone, stack + STACK, CLONE_VM | CLONE_VFORK, spawned);
    if (first == -1)
        spawned->error = errno;
    while (first != -1 && waitpid(first, NULL, __WCLONE) == -1 && errno == EINTR)
        continue;
    if (spawned->error && spawned->memory != MAP_FAILED)
        munmap(spawned->memory, spawned->size);
    return spawned->error ? strerror_r(spawned->error, reason, sizeof reason) : NULL;
}

/* A process that has ended stays a zombie until its parent waits for it. In some containers the
 * first process never waits. */
static bool is_zombie(pid_t process) {
    char path[32], text[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "re");
    const bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    const char *name_ends = read ? strrchr(text, ')') : NULL; /* PID (NAME) STATE */
    return name_ends && strncmp(name_ends, ") Z", 3) == 0;
}

bool spawned_runs(pid_t process) {
    return (kill(process, 0) == 0 || errno != ESRCH) && !is_zombie(process);
}
