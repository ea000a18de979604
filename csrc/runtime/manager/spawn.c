/* Creates two clones of the process, as a daemon is created by two forks. The clones share the
 * program's memory, but no descriptors.
 *
 * The first clone has exit signal 0: its end sends no signal, and the program's wait does not
 * report the clone. exec would restore the exit signal, so the second clone executes the new
 * program. When the first clone has ended, init becomes the parent of the second clone. Each clone
 * has its own stack. The calling thread is suspended while the clones run (CLONE_VFORK). The clones
 * have their own table of descriptors, so their opens and closes do not affect the program. The
 * clones run no handlers of pthread_atfork, and the kernel copies no page tables. So the clones are
 * safe with MPI libraries that forbid fork.
 *
 * If the program's process is the init of its container, or adopts orphans, the kernel would make
 * the manager a child of the program. If process 1 does not wait for orphans (adopter_waits), the
 * manager would remain as a zombie after its end. spawn_detached creates no process that would
 * become such a child or zombie. */
#include "manager/spawn.h"
#include "proof.h"
#include "telemetry/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the process that has to wait for the manager when it ends ---- */

/* The link to the kernel's first PID namespace, which has the same number on every Linux. */
static const char machines_namespace[] = "pid:[4026531836]";

static bool is_link_to(const char *path, const char *wanted) {
    char target[64];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strcmp(target, wanted) == 0;
}

/* Returns false if /proc describes process 1 of another namespace. */
static bool is_own_proc(void) {
    char number[24];
    snprintf(number, sizeof number, "%ld", (long)getpid());
    return is_link_to("/proc/self", number);
}

/* The ignored and the blocked signals of process 1, as bits. */
struct first {
    uint64_t ignored, blocked;
    bool sleeps;
};

static struct first read_first(void) {
    char line[256];
    struct first first = {0};
    FILE *status = fopen("/proc/1/status", "re");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "State:\tS", 8) == 0)
            first.sleeps = true;
        else if (strncmp(line, "SigBlk:", 7) == 0)
            first.blocked = strtoull(line + 7, NULL, 16);
        else if (strncmp(line, "SigIgn:", 7) == 0)
            first.ignored = strtoull(line + 7, NULL, 16);
    }
    if (status)
        fclose(status);
    return first;
}

static bool has(uint64_t signals, int number) {
    return signals >> (number - 1) & 1;
}

/* Returns true if process 1 sleeps with SIGCHLD and SIGTERM blocked. An init blocks signals, and
 * receives signals such as SIGTERM by sigwait or from a descriptor. An application in system()
 * blocks SIGCHLD but not SIGTERM, and an application that forks blocks SIGTERM only for a moment.
 */
static bool is_init(const struct first *first) {
    return first->sleeps && has(first->blocked, SIGCHLD) &&
           PROOF(init_waits_for_signals, has(first->blocked, SIGTERM));
}

/* Returns true if process 1 certainly waits for every orphan that it adopts, so that no zombie
 * remains. Process 1 waits for orphans if it is the machine's init, ignores SIGCHLD, or sleeps with
 * SIGCHLD and SIGTERM blocked, as a container's init does. If process 1 is an application, it may
 * wait only for its own children. */
static bool adopter_waits(void) {
    if (is_link_to("/proc/self/ns/pid", machines_namespace))
        return true;
    if (!is_own_proc())
        return false;
    const struct first first = read_first();
    return has(first.ignored, SIGCHLD) || is_init(&first);
}

/* ---- the new process ---- */

enum { STACK = 64 << 10, NICER = 10, MOST_DESCRIPTORS = 1 << 16 };
#define NEVER_RUN 8U /* MFD_NOEXEC_SEAL */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#ifdef __SANITIZE_THREAD__
#define WATCHED 1
#elif defined __has_feature
#define WATCHED __has_feature(thread_sanitizer)
#else
#define WATCHED 0
#endif

/* ThreadSanitizer records the entry and the return of each call, but the clones' functions never
 * return. ThreadSanitizer also mistakes a clone for a fork, and would then ignore the calling
 * thread. */
#if WATCHED
#define UNWATCHED __attribute__((no_sanitize("thread")))
extern __typeof__(clone) __clone;
#define clone __clone
#else
#define UNWATCHED
#endif

struct stacks {
    char first[STACK], second[STACK];
};

struct work {
    struct spawn *spawn;
    struct stacks *stacks;
};

static int adopts_orphans(void) {
    int adopts = 0;
    return getpid() == 1 || prctl(PR_GET_CHILD_SUBREAPER, &adopts) != 0 || adopts;
}

/* Ends the process as _exit does, but without a sanitizer's wrapper. */
UNWATCHED static _Noreturn void leave(void) {
    for (;;)
        syscall(SYS_exit_group, 0);
}

UNWATCHED static void close_all(void) {
    struct rlimit limit;
    if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0)
        return;
    const int known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < MOST_DESCRIPTORS;
    const int end = known ? (int)limit.rlim_cur : MOST_DESCRIPTORS;
    for (int fd = 0; fd < end; fd++)
        close(fd);
}

/* Kernels before 6.3 do not support the flag NEVER_RUN. An administrator can configure later
 * kernels to require the flag NEVER_RUN. */
UNWATCHED static int create_memory(void) {
    const int memory = (int)syscall(SYS_memfd_create, "mgpu_rt", NEVER_RUN);
    return memory == -1 && errno == EINVAL ? (int)syscall(SYS_memfd_create, "mgpu_rt", 0U) : memory;
}

/* Connects descriptors 0 to 2 to /dev/null, and CHANNEL_FD to the memory. */
UNWATCHED static int arrange_descriptors(struct spawn *spawn) {
    close_all();
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere != 0 || dup(nowhere) != 1 || dup(nowhere) != 2)
        return 0;
    const int memory = create_memory();
    if (memory != CHANNEL_FD || ftruncate(memory, (off_t)spawn->size) != 0)
        return 0;
    void *mapped = mmap(NULL, spawn->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    spawn->memory = mapped == MAP_FAILED ? NULL : mapped;
    return spawn->memory != NULL;
}

/* Lowers the priority of the calling process, and disables its core files. The scheduling class
 * stays the program's. */
UNWATCHED static void be_modest(void) {
    const struct rlimit no_core = {0, 0};
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setsid();
}

/* Resets the signal handlers, and then unblocks all signals. In this order, no handler runs in a
 * process that shares the program's memory. */
UNWATCHED static void reset_signals(void) {
    const struct sigaction ordinary = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &ordinary, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

UNWATCHED static int exec_child(void *argument) {
    struct spawn *spawn = argument;
    reset_signals();
    execve(spawn->path, spawn->arguments, spawn->environment);
    spawn->error = errno;
    leave();
}

UNWATCHED static int prepare(void *argument) {
    struct work *work = argument;
    struct spawn *spawn = work->spawn;
    be_modest();
    if (arrange_descriptors(spawn)) {
        spawn->pid = PROOF_VALUE(
            manager_is_nobodys_child,
            clone(exec_child, work->stacks->second + STACK, CLONE_VM | CLONE_VFORK, spawn),
            exec_child(spawn));
        if (spawn->pid == -1)
            spawn->error = errno;
    } else {
        spawn->error = errno;
    }
    leave();
}

int spawn_detached(struct spawn *spawn) {
    spawn->memory = NULL;
    spawn->pid = -1;
    spawn->error = 0;
    if (DOUBT(program_adopts_orphans, adopts_orphans())) {
        spawn->error = ECHILD;
        return 0;
    }
    if (!PROOF(manager_is_waited_for, adopter_waits())) {
        spawn->error = ESRCH;
        return 0;
    }
    struct stacks *stacks = mmap(NULL, sizeof *stacks, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        spawn->error = errno;
        return 0;
    }
    struct work work = {spawn, stacks};
    const int flags = CLONE_VM | CLONE_VFORK | PROOF_VALUE(end_is_signalled_to_nobody, 0, SIGCHLD);
    const pid_t first = clone(prepare, stacks->first + STACK, flags, &work);
    if (first == -1)
        spawn->error = errno;
    else
        while (waitpid(first, NULL, __WCLONE) == -1 && errno == EINTR)
            continue;
    munmap(stacks, sizeof *stacks);
    if (spawn->error == 0 && spawn->pid == -1)
        spawn->error = ENOSYS; /* an emulator such as valgrind copies the memory instead of sharing
                                * it */
    if (spawn->error && spawn->memory)
        munmap(spawn->memory, spawn->size);
    return spawn->error == 0;
}
