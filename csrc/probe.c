/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs it the way it
 * would run any other, to see what really happens; the library tells the rest (MGPU_RT_VERBOSE). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *mgpu_rt_stats_json(void);
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

int main(int argc, char **argv) {
    void *stream = mgpuStreamCreate();
    if (stream == NULL)
        return 1;
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    if (argc > 1 && strcmp(argv[1], "--manager") == 0)
        wait_for_manager();
    return 0;
}
