/* Launches a kernel that another compiler has compiled. The program names the kernel by a symbol on
 * the host, so the program loads no module and looks up no name. kernel.hip defines the kernel; a C
 * program declares the kernel's symbol, and the linker resolves the symbol.
 *
 * Prints:
 *
 *     scaled: 1.5 3 4.5 6 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 4, THREADS = 64 };

extern char scale[]; /* a symbol of kernel.hip; the program uses only its address */

/* The functions that MLIR's lowering calls (docs/abi.md). */
typedef struct ihipStream_t *hipStream_t;
void *mgpuMemAlloc(uint64_t bytes, hipStream_t stream, bool host_shared);
void mgpuMemFree(void *memory, hipStream_t stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, hipStream_t stream);
hipStream_t mgpuStreamCreate(void);
void mgpuStreamSynchronize(hipStream_t stream);
void mgpuStreamDestroy(hipStream_t stream);
void mgpuLaunchKernelRT(void *symbol, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                        intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t shared,
                        hipStream_t stream, void **arguments, void **extra, size_t count);

int main(void) {
    float numbers[COUNT] = {1, 2, 3, 4};
    const hipStream_t stream = mgpuStreamCreate();
    void *device = mgpuMemAlloc(sizeof numbers, stream, false);
    mgpuMemcpy(device, numbers, sizeof numbers, stream);

    float factor = 1.5f;
    int count = COUNT;
    void *arguments[] = {&device, &factor, &count};
    mgpuLaunchKernelRT(scale, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL, 3);

    mgpuMemcpy(numbers, device, sizeof numbers, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(device, stream);
    mgpuStreamDestroy(stream);
    printf("scaled: %g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);
    return numbers[0] == 1.5f && numbers[3] == 6 ? 0 : 1;
}
