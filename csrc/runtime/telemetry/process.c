#include "telemetry/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* torchrun; Open MPI; launchers with PMIx; MPICH (also Intel's and HPE Cray's); MVAPICH 3 and 2;
 * PALS; Flux; Slurm. The innermost launcher's variable comes first: a launcher may run inside
 * another one. */
static const char *const rank_variables[] = {
    "RANK",        "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
    "PMI_RANK",    "MVP_COMM_WORLD_RANK",  "MV2_COMM_WORLD_RANK",
    "PALS_RANKID", "FLUX_TASK_RANK",       "SLURM_PROCID"};

/* Returns true for RANK if LOCAL_RANK is not set, because programs other than torchrun may set
 * RANK. */
static bool is_foreign(const char *variable) {
    return strcmp(variable, "RANK") == 0 && !secure_getenv("LOCAL_RANK");
}

int process_rank(void) {
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        const char *value = secure_getenv(rank_variables[i]);
        char *end;
        if (!value || !value[0] || is_foreign(rank_variables[i]))
            continue;
        const long rank = strtol(value, &end, 10);
        return *end == '\0' && rank >= 0 && rank <= 1 << 30 ? (int)rank : -1;
    }
    return -1;
}

unsigned long long process_field(long process, int field) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    const char *at = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    for (int i = 2; at && i < field; i++) /* field 2 is the name, which may contain any character */
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
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
