#include "launch/clusters.h"
#include "driver/device.h"
#include "driver/hip.h"

#include <dlfcn.h>
#include <pthread.h>

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
    void *library = dlopen(hip_path(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&launch_with = dlsym(library, "hipDrvLaunchKernelEx");
    dlclose(library); /* the runtime has it open */
}

/* gfx1250 is 12.5 to HIP; gfx1200, which has none, 12.0. */
static bool has_clusters(void) {
    const int device = hip_current_device();
    int major = 0, minor = 0;
    hipError_t error =
        hip.DeviceGetAttribute(&major, hipDeviceAttributeComputeCapabilityMajor, device);
    if (error == hipSuccess)
        error = hip.DeviceGetAttribute(&minor, hipDeviceAttributeComputeCapabilityMinor, device);
    return device_answered(error) && (major > 12 || (major == 12 && minor >= 5));
}

hipError_t clusters_launch(const struct launch *launch, dim3 cluster, bool cooperative) {
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
