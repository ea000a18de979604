/* Loads an image of scale.mlir and launches the image's kernel, without host code from MLIR:
 *
 *     mgpu-rt lower --emit image scale.mlir -o scale.hsaco
 *     cc launch.c $(mgpu-rt config --libs) -o launch
 *     mgpu-rt run -- ./launch scale.hsaco
 *
 * Prints:
 *
 *     scaled: 1.5 3 4.5 6 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4, THREADS = 64 };

/* The functions that MLIR's lowering calls (docs/abi.md). */
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
hipModule_t mgpuModuleLoad(void *image, size_t bytes);
void mgpuModuleUnload(hipModule_t module);
hipFunction_t mgpuModuleGetFunction(hipModule_t module, const char *name);
void mgpuLaunchKernel(hipFunction_t function, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                      intptr_t block_x, intptr_t block_y, intptr_t block_z, int32_t shared,
                      hipStream_t stream, void **arguments, void **extra, size_t count);
hipStream_t mgpuStreamCreate(void);
void mgpuStreamSynchronize(hipStream_t stream);
void mgpuStreamDestroy(hipStream_t stream);
void *mgpuMemAlloc(uint64_t bytes, hipStream_t stream, bool host_shared);
void mgpuMemFree(void *memory, hipStream_t stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, hipStream_t stream);

/* Reads a file, and appends the zero with which PTX must end; returns NULL on failure. */
static char *read_image(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *image = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long end = ftell(file);
        rewind(file);
        if (end > 0 && (image = calloc((size_t)end + 1, 1)))
            *bytes = fread(image, 1, (size_t)end, file);
    }
    fclose(file);
    return image;
}

static void scale(hipFunction_t kernel, float *numbers, float factor) {
    const size_t bytes = COUNT * sizeof *numbers;
    const hipStream_t stream = mgpuStreamCreate();
    void *device = mgpuMemAlloc(bytes, stream, false);
    mgpuMemcpy(device, numbers, bytes, stream);

    /* MLIR splits a memref into five arguments; the factor and the count follow. */
    int64_t offset = 0, size = COUNT, stride = 1, count = COUNT;
    void *arguments[] = {&device, &device, &offset, &size, &stride, &factor, &count};
    const size_t given = sizeof arguments / sizeof *arguments;
    mgpuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL, given);

    mgpuMemcpy(numbers, device, bytes, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(device, stream);
    mgpuStreamDestroy(stream);
}

int main(int count, char **words) {
    size_t bytes = 0;
    char *image = count == 2 ? read_image(words[1], &bytes) : NULL;
    if (!image) {
        fprintf(stderr, "launch: name a file that mgpu-rt lower --emit image wrote\n");
        return 2;
    }
    float numbers[COUNT] = {1, 2, 3, 4};
    const hipModule_t module = mgpuModuleLoad(image, bytes);
    const hipFunction_t kernel = module ? mgpuModuleGetFunction(module, "scale") : NULL;
    if (!kernel)
        return 1; /* the library has printed the reason */
    scale(kernel, numbers, 1.5f);
    mgpuModuleUnload(module);
    free(image);
    printf("scaled: %g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);
    return numbers[0] == 1.5f && numbers[3] == 6 ? 0 : 1;
}
