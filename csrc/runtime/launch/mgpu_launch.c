/* mgpuLaunchKernel and its variants. In addition to HIP's own call, a launch costs some tests and
 * one store. If the driver refuses a launch, the metadata of the kernel's image may tell why. */
#include "driver/device.h"
#include "launch/launch_advice.h"
#include "streams/mgpu_stream.h"

#include <stdio.h>

static struct advice null_function = {
    .text = "a null function was launched: mgpuModuleGetFunction failed, see the message before",
    .follows = NULL_FUNCTION};
static struct advice unknown_symbol = {
    .text = "%p is not the host symbol of a kernel, or its grid of %ld x %ld x %ld does not fit: "
            "link the object that registers the kernel (__hipRegisterFunction)"};
static struct advice no_clusters = {
    .text = "this GPU has no workgroup clusters, or this HIP cannot launch them (AMD's GPUs have "
            "clusters from gfx1250 on, with HIP 7): the kernel was not launched. Lower without "
            "`clusters in`"};

static struct advice bad_cluster = {
    .text = "clusters of %u x %u x %u in a grid of %u x %u x %u: the GPU must have clusters (sm_90 "
            "or gfx1250, and later), each size of the grid must be a multiple of the cluster's "
            "size, and a cluster has at most 8 workgroups (gfx1250: 16)"};

static const char launch_expression[] =
    "hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, stream, "
    "params, extra)";
static const char cooperative_expression[] =
    "hipModuleLaunchCooperativeKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, "
    "stream, params)";

#define LAUNCH                                                                                     \
    (&(struct launch){                                                                             \
        function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, smem, stream, params, extra})

static bool is_cluster(intptr_t x, intptr_t y, intptr_t z) {
    return x > 1 || y > 1 || z > 1;
}

/* Reports a failure of a launch, or that HIP has cut its sizes. */
static __attribute__((noinline, cold)) void report_end(const char *expression, hipError_t error,
                                                       const struct launch *launch) {
    if (error != hipSuccess && !launch->function)
        report_failure(expression, error, &null_function);
    else if (error != hipSuccess)
        launch_report(expression, error, launch);
    else
        launch_report_cut(launch);
}

/* HIP 5 reports too much workgroup memory by hipErrorOutOfMemory, too: then idle memory cannot
 * help. Asks nothing about the device of an unknown stream if there are several devices. */
static __attribute__((noinline, cold)) bool room_may_help(const struct stream *stream,
                                                          int32_t smem) {
    const int device = stream ? stream->device : 0;
    return (!stream && hip_device_count > 1) ||
           PROOF(workgroup_memory_suffices, device_has_group_memory(device, smem));
}

#define RETRY_LAUNCH(call) RETRY_IF(room_may_help(known, smem), call)

/* ---- launches ---- */

/* Without the attribute, the compiler stops inlining this function once the rest of the library has
 * grown enough. Each launch then takes 16 instructions more. */
inline __attribute__((always_inline)) void
impl_mgpuLaunchKernel(hipFunction_t function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                      intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                      hipStream_t stream, void **params, void **extra, size_t late_params_count) {
    (void)late_params_count; /* LLVM before 18 passes garbage here */
    struct thread *thread = thread_get();
    struct stream *known;
    if (!stream_usable(thread, stream, &known, launch_expression))
        return;
    const hipError_t error = RETRY_LAUNCH(hip.ModuleLaunchKernel(
        function, (unsigned)gridX, (unsigned)gridY, (unsigned)gridZ, (unsigned)blockX,
        (unsigned)blockY, (unsigned)blockZ, (unsigned)smem, stream, params, extra));
    stream_launched(known);
    if (UNLIKELY(error != hipSuccess || launch_is_cut(LAUNCH)))
        report_end(launch_expression, error, LAUNCH);
}

/* ---- clusters: AMD's GPUs have them from gfx1250 on ---- */

static dim3 dim3_of(const intptr_t size[3]) {
    return (dim3){(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]};
}

enum { COOPERATIVE = 2, CLUSTER_DIMENSION = 4 }; /* hipLaunchAttributeID */

/* hipLaunchAttribute, and HIP_LAUNCH_CONFIG. */
struct launch_attribute {
    int id;
    char pad[4];
    union {
        dim3 cluster;
        int cooperative;
        char bytes[64];
    } value;
};
struct launch_config {
    dim3 grid, block;
    unsigned smem;
    hipStream_t stream;
    struct launch_attribute *attributes;
    unsigned count;
};

_Static_assert(sizeof(struct launch_attribute) == 72 && sizeof(struct launch_config) == 56,
               "as in HIP 7");

typedef hipError_t launch_function(const struct launch_config *config, hipFunction_t function,
                                   void **params, void **extra);

static launch_function *launch_with;

static void find_launch(void) {
    *(void **)&launch_with = hip_symbol("hipDrvLaunchKernelEx");
}

/* HIP reports version 12.5 for gfx1250, which has clusters, and version 12.0 for gfx1200, which has
 * no clusters. */
static bool has_clusters(void) {
    const int device = hip_current_device();
    int major = 0, minor = 0;
    hipError_t error =
        hip.DeviceGetAttribute(&major, hipDeviceAttributeComputeCapabilityMajor, device);
    if (error == hipSuccess)
        error = hip.DeviceGetAttribute(&minor, hipDeviceAttributeComputeCapabilityMinor, device);
    return device_answered(error) && (major > 12 || (major == 12 && minor >= 5));
}

/* Launches a kernel in clusters of `cluster` workgroups; the grid must be a multiple of `cluster`.
 * Returns hipErrorNotSupported if the thread's device has no clusters, or HIP lacks
 * hipDrvLaunchKernelEx, which came with HIP 7. An older GPU would run the kernel without clusters.
 */
static hipError_t launch_in_clusters(const struct launch *launch, dim3 cluster, bool cooperative) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_launch);
    if (!launch_with || !has_clusters())
        return hipErrorNotSupported;
    struct launch_attribute attributes[] = {{.id = CLUSTER_DIMENSION, .value.cluster = cluster},
                                            {.id = COOPERATIVE, .value.cooperative = 1}};
    const struct launch_config config = {.grid = dim3_of(launch->grid),
                                         .block = dim3_of(launch->block),
                                         .smem = (unsigned)launch->smem,
                                         .stream = launch->stream,
                                         .attributes = attributes,
                                         .count = cooperative ? 2 : 1};
    return launch_with(&config, launch->function, launch->params, launch->extra);
}

static void launch_cluster(const struct launch *launch, const intptr_t cluster[3],
                           bool cooperative) {
    const intptr_t *grid = launch->grid;
    struct stream *known;
    if (!launch->function) {
        report_failure(launch_expression, hipErrorInvalidImage, &null_function);
        return;
    }
    if (!stream_usable(thread_get(), launch->stream, &known, launch_expression))
        return;
    const hipError_t error =
        cuda_present()
            ? cuda.launch_cluster(launch->function, dim3_of(cluster), dim3_of(launch->grid),
                                  dim3_of(launch->block), (unsigned)launch->smem, cooperative,
                                  launch->stream, launch->params, launch->extra)
            : launch_in_clusters(launch, dim3_of(cluster), cooperative);
    stream_launched(known);
    if (error == hipErrorNotSupported && !cuda_present())
        report_failure(launch_expression, error, &no_clusters);
    else if (error != hipSuccess)
        report_failure(launch_expression, error, &bad_cluster, (unsigned)cluster[0],
                       (unsigned)cluster[1], (unsigned)cluster[2], (unsigned)grid[0],
                       (unsigned)grid[1], (unsigned)grid[2]);
    else
        launch_report_cut(launch);
}

/* HIP's cooperative launch does not accept `extra`. */
void impl_mgpuLaunchKernelCooperative(hipFunction_t function, intptr_t gridX, intptr_t gridY,
                                      intptr_t gridZ, intptr_t clusterX, intptr_t clusterY,
                                      intptr_t clusterZ, intptr_t blockX, intptr_t blockY,
                                      intptr_t blockZ, int32_t smem, hipStream_t stream,
                                      void **params, void **extra) {
    struct stream *known;
    if (function && is_cluster(clusterX, clusterY, clusterZ)) {
        launch_cluster(LAUNCH, (intptr_t[]){clusterX, clusterY, clusterZ}, true);
        return;
    }
    if (!stream_usable(thread_get(), stream, &known, cooperative_expression))
        return;
    const hipError_t error = RETRY_LAUNCH(hip.ModuleLaunchCooperativeKernel(
        function, (unsigned)gridX, (unsigned)gridY, (unsigned)gridZ, (unsigned)blockX,
        (unsigned)blockY, (unsigned)blockZ, (unsigned)smem, stream, params));
    stream_launched(known);
    report_end(cooperative_expression, error, LAUNCH);
}

void impl_mgpuLaunchClusterKernel(hipFunction_t function, intptr_t clusterX, intptr_t clusterY,
                                  intptr_t clusterZ, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                                  intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                                  hipStream_t stream, void **params, void **extra,
                                  size_t late_params_count) {
    (void)late_params_count; /* AMD's fork passes this argument */
    if (cuda_present() || is_cluster(clusterX, clusterY, clusterZ))
        launch_cluster(LAUNCH, (intptr_t[]){clusterX, clusterY, clusterZ}, false);
    else
        impl_mgpuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, stream,
                              params, extra, 0);
}

void impl_mgpuLaunchKernelRT(void *symbol, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                             hipStream_t stream, void **params, void **extra,
                             size_t late_params_count) {
    (void)extra; /* hipLaunchKernel does not accept this argument */
    (void)late_params_count;
    static const char expression[] =
        "hipLaunchKernel(function, dim3(gridX, gridY, gridZ), dim3(blockX, blockY, blockZ), "
        "params, smem, stream)";
    const dim3 grid = {(uint32_t)gridX, (uint32_t)gridY, (uint32_t)gridZ};
    const dim3 block = {(uint32_t)blockX, (uint32_t)blockY, (uint32_t)blockZ};
    struct stream *known;
    if (!stream_usable(thread_get(), stream, &known, expression))
        return;
    lazy_end();
    const struct launch launch = {
        .grid = {gridX, gridY, gridZ}, .block = {blockX, blockY, blockZ}, .smem = smem};
    const hipError_t error =
        RETRY_LAUNCH(hip.LaunchKernel(symbol, grid, block, params, (size_t)smem, stream));
    stream_launched(known);
    if (error != hipSuccess && !symbol)
        report_failure(expression, error, &null_function);
    else if (error != hipSuccess)
        report_failure(expression, error, &unknown_symbol, symbol, (long)gridX, (long)gridY,
                       (long)gridZ);
    else
        launch_report_cut(&launch);
}
