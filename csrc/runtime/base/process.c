#include "base/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Open MPI; whatever is built on PMIx; MPICH and Intel MPI; MVAPICH; PALS; Flux; and last Slurm,
 * which also numbers processes that another one launches. */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID"};

int process_rank(void) {
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        const char *value = secure_getenv(rank_variables[i]);
        char *end;
        if (!value || !value[0])
            continue;
        const long rank = strtol(value, &end, 10);
        return *end == '\0' && rank >= 0 && rank <= 1 << 30 ? (int)rank : -1;
    }
    return -1;
}

struct process process_now(void) {
    struct process process = {.id = getpid(), .rank = process_rank(), .begin = stats_now()};
    snprintf(process.program, sizeof process.program, "%s", program_invocation_short_name);
    return process;
}
