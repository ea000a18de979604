/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs it the way it
 * would run any other, to see what really happens; the library tells the rest (MGPU_RT_VERBOSE).
 * With the argument --hip it prints which HIP libraries a program would find, and opens none; with
 * --manager it waits until Python manages the caches, or will not. */
#include "mgpu_rt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamDestroy(void *stream);

/* Until Python manages the caches, or will not. */
static void wait_for_manager(void) {
    for (int starting = 1; starting; usleep(5000)) {
        char *text = mgpu_rt_stats_json();
        starting = text && strstr(text, "\"manager\": \"starting\"");
        free(text);
    }
}

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
    if (count > 1 && strcmp(arguments[1], "--manager") == 0)
        wait_for_manager();
    return 0;
}
