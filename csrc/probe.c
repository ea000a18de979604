/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs it the way it
 * would run any other, to see what really happens; the library tells the rest (MGPU_RT_VERBOSE).
 * With the argument --hip it prints which HIP libraries a program would find, and opens none; with
 * --stay it ends when its standard input does, so that there is time for the manager to begin. */
#include "mgpu_rt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamDestroy(void *stream);

static int print_hip(void) {
    char *found = mgpu_rt_find_hip();
    const int status = found && fputs(found, stdout) >= 0 ? 0 : 1;
    free(found);
    return status;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--hip") == 0)
        return print_hip();
    void *stream = mgpuStreamCreate();
    if (stream == NULL)
        return 1;
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    if (count > 1 && strcmp(arguments[1], "--stay") == 0)
        while (getchar() != EOF)
            continue;
    return 0;
}
