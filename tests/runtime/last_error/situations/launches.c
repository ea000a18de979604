/* mgpuLaunch*. */
#include "../setting.h"

SITUATION(launch_good) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_new();
    CALL(launch(function, 1, 1, 0, stream));
    mgpuStreamDestroy(stream);
}

SITUATION(launch_without_a_stream) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 0, NULL));
}

SITUATION(launch_null) {
    CALL(launch(NULL, 1, 1, 0, NULL));
}

SITUATION(launch_no_blocks) {
    hipFunction_t function = kernel();
    CALL(launch(function, 0, 1, 0, NULL));
}

SITUATION(launch_no_threads) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 0, 0, NULL));
}

SITUATION(launch_block_beyond_the_kernels) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 512, 0, NULL));
}

SITUATION(launch_block_beyond_the_devices) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 4096, 0, NULL));
}

SITUATION(launch_grid_too_large) {
    hipFunction_t function = kernel();
    CALL(launch(function, (intptr_t)1 << 31, 256, 0, NULL));
}

SITUATION(launch_shared_memory_too_large) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 1 << 20, NULL));
}

SITUATION(launch_on_a_destroyed_stream) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_destroyed();
    CALL(launch(function, 1, 1, 0, stream));
}

SITUATION(launch_on_an_unknown_stream) {
    hipFunction_t function = kernel();
    CALL(launch(function, 1, 1, 0, UNKNOWN(hipStream_t)));
}

SITUATION(cooperative_good) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 1, 1, NULL));
}

SITUATION(cooperative_null) {
    CALL(launch_cooperatively(NULL, 1, 1, NULL));
}

SITUATION(cooperative_no_blocks) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 0, 1, NULL));
}

SITUATION(cooperative_too_large) {
    hipFunction_t function = kernel();
    CALL(launch_cooperatively(function, 1 << 20, 256, NULL));
}

SITUATION(cooperative_on_a_destroyed_stream) {
    hipFunction_t function = kernel();
    hipStream_t stream = stream_destroyed();
    CALL(launch_cooperatively(function, 1, 1, stream));
}

SITUATION(cooperative_in_clusters) {
    hipFunction_t function = kernel();
    CALL(mgpuLaunchKernelCooperative(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

SITUATION(clusters_of_one) {
    hipFunction_t function = kernel();
    if (mgpuLaunchClusterKernel != NULL)
        CALL(mgpuLaunchClusterKernel(function, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 1));
}

SITUATION(clusters) {
    hipFunction_t function = kernel();
    if (mgpuLaunchClusterKernel != NULL)
        CALL(mgpuLaunchClusterKernel(function, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 1));
}

SITUATION(symbol_unknown) {
    CALL(mgpuLaunchKernelRT(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0));
}

SITUATION(symbol_null) {
    CALL(mgpuLaunchKernelRT(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, 0));
}
