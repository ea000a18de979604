/* Lends a stream of the program to a function compiled by MLIR. The function's kernel runs on this
 * stream, between the program's two copies.
 *
 * Prints:
 *
 *     MLIR's functions use the program's stream: yes
 *     scaled: 1.5 3 4.5 6
 *     and afterwards one of their own: yes */
#include "hip.h"
#include "memref.h"

#include <mgpu_rt.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4 };

void _mlir_ciface_scale_on_device(struct memref *numbers, float factor); /* of scale.mlir */
hipStream_t mgpuStreamCreate(void); /* lowered programs call this function (docs/abi.md) */
void mgpuStreamDestroy(hipStream_t stream);

static void check(int error, const char *what) {
    if (error == hipSuccess)
        return;
    fprintf(stderr, "outside_stream: %s failed with error %d of HIP\n", what, error);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* Returns the stream that mgpuStreamCreate gives to a function compiled by MLIR. */
static hipStream_t stream_of_mlir(void) {
    const hipStream_t stream = mgpuStreamCreate();
    mgpuStreamDestroy(stream); /* the library does not destroy the program's stream */
    return stream;
}

static void scale(float *numbers, hipStream_t stream) {
    void *device;
    CHECK(hipMalloc(&device, COUNT * sizeof(float)));
    struct memref view = memref_of(device, COUNT);

    const size_t bytes = COUNT * sizeof(float);
    CHECK(hipMemcpyAsync(device, numbers, bytes, hipMemcpyHostToDevice, stream));
    _mlir_ciface_scale_on_device(&view, 1.5f);
    CHECK(hipMemcpyAsync(numbers, device, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
}

int main(void) {
    float numbers[COUNT] = {1, 2, 3, 4};
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));

    if (mgpu_rt_use_stream(stream) != 0) /* lends the stream to the library on this thread */
        return 1;
    const int ours = stream_of_mlir() == stream;
    printf("MLIR's functions use the program's stream: %s\n", ours ? "yes" : "no");
    scale(numbers, stream);
    printf("scaled: %g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);

    mgpu_rt_use_stream(NULL); /* this call must precede hipStreamDestroy */
    const int theirs = stream_of_mlir() != stream;
    printf("and afterwards one of their own: %s\n", theirs ? "yes" : "no");
    CHECK(hipStreamDestroy(stream));
    return ours && theirs && numbers[0] == 1.5f && numbers[3] == 6 ? 0 : 1;
}
