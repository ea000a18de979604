/* mgpu-rt-probe: the smallest program that uses the library. `mgpu-rt doctor` runs it the way it
 * would run any other, to see what really happens; the library tells the rest (MGPU_RT_VERBOSE). */
#include <stddef.h>

void *mgpuStreamCreate(void);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamDestroy(void *stream);

int main(void) {
    void *stream = mgpuStreamCreate();
    if (stream == NULL)
        return 1;
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    return 0;
}
