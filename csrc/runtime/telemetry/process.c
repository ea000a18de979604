#include "telemetry/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int process_rank(void) {
    const char *variable, *value = options_launcher(LAUNCHER_RANK, &variable);
    char *end = NULL;
    const long rank = value ? strtol(value, &end, 10) : -1;
    return end && *end == '\0' && rank >= 0 && rank <= 1 << 30 ? (int)rank : -1;
}

/* The kernel counts a folder's subfolders and two more links. */
size_t process_threads(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 0;
}

/* The kernel clears a thread's list of robust mutexes when the thread ends, so no descriptor is
 * needed to detect the end. */
bool process_main_has_ended(void) {
    void *list = &list;
    size_t size;
    return syscall(SYS_get_robust_list, getpid(), &list, &size) == 0 && !list;
}

struct process process_now(void) {
    struct process process = {
        .id = getpid(), .rank = process_rank(), .begin = clock_ns(), .date = time(NULL)};
    snprintf(process.program, sizeof process.program, "%s", program_invocation_short_name);
    return process;
}
