#include "kernel.h"

#include "calls.h"
#include "graph.h"
#include "hipstub.h"
#include "log.h"
#include "mode.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024, MOST_SHARED_BYTES = 65536 };

struct body {
    char *name;
    void (*function)(void **params);
    size_t *sizes;
    unsigned count;
    struct body *next;
};

struct launch {
    struct operation operation;
    const struct body *body;
    hipModule_t module;
    unsigned size[6];
    void **params; /* pointers to copies of the arguments; the copies are in the same allocation */
};

static struct body *bodies;
static _Thread_local const struct launch *current;

void hipstub_set_kernel(const char *name, void (*function)(void **params), const size_t *sizes,
                        unsigned count) {
    struct body *body = malloc(sizeof *body);
    *body = (struct body){.name = strdup(name), .function = function, .count = count};
    body->sizes = malloc((count + 1) * sizeof *sizes);
    if (count != 0)
        memcpy(body->sizes, sizes, count * sizeof *sizes);
    stub_lock();
    body->next = bodies; /* new launches of a kernel find the newest body first */
    bodies = body;
    stub_unlock();
}

void hipstub_launch_size(unsigned size[6]) {
    memcpy(size, current->size, sizeof current->size);
}

void *hipstub_global(const char *name) {
    stub_lock();
    struct global *global = module_global(current->module, name);
    stub_unlock();
    return global == NULL ? NULL : global->address;
}

static void run_body(struct operation *operation) {
    struct launch *launch = (struct launch *)operation;
    if (launch->body != NULL) {
        current = launch;
        launch->body->function(launch->params);
        current = NULL;
    }
}

static void end_launch(struct operation *operation) {
    struct launch *launch = (struct launch *)operation;
    free(launch->params);
    --launch->module->launches;
    module_drop_image(launch->module);
}

static const struct body *body_of(const char *name) {
    const struct body *body = bodies;
    while (body != NULL && strcmp(body->name, name) != 0)
        body = body->next;
    return body;
}

/* Copies the arguments, because the stream may read them after the caller's arrays are gone.
 */
static void **copy_params(const struct body *body, void **params) {
    size_t bytes = body->count * sizeof(void *);
    for (unsigned i = 0; i < body->count; ++i)
        bytes += (body->sizes[i] + 15) & ~(size_t)15;
    void **copies = malloc(bytes + 16);
    unsigned char *at = (unsigned char *)(copies + ((body->count + 1) & ~1u));
    for (unsigned i = 0; i < body->count; ++i) {
        copies[i] = memcpy(at, params[i], body->sizes[i]);
        at += (body->sizes[i] + 15) & ~(size_t)15;
    }
    return copies;
}

hipError_t emu_hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, hipStream_t stream,
                                     void **params, void **extra) {
    (void)extra;
    if (function == NULL && stub_version < HIP_7)
        return hipErrorInvalidImage; /* AMD's HIP 5.2.3 returns hipErrorInvalidImage here */
    struct ihipStream_t *found = stream_of("hipModuleLaunchKernel", stream);
    if (found == NULL)
        return hipErrorContextIsDestroyed;
    struct operation *operation;
    const hipError_t error =
        launch_operation(&(hipKernelNodeParams){.blockDim = {block_x, block_y, block_z},
                                                .func = function,
                                                .gridDim = {grid_x, grid_y, grid_z},
                                                .kernelParams = params,
                                                .sharedMemBytes = shared_bytes},
                         &operation);
    if (error == hipSuccess)
        stream_submit(found, operation);
    return error;
}

hipError_t launch_operation(const hipKernelNodeParams *p, struct operation **operation) {
    hipFunction_t function = p->func;
    if (!object_check("hipModuleLaunchKernel", FUNCTION, function))
        return hipErrorInvalidHandle;
    if (p->gridDim.x == 0 || p->gridDim.y == 0 || p->gridDim.z == 0 || p->blockDim.x == 0 ||
        p->blockDim.y == 0 || p->blockDim.z == 0)
        return hipErrorInvalidValue;
    if ((uint64_t)p->blockDim.x * p->blockDim.y * p->blockDim.z > MOST_THREADS)
        return hipErrorInvalidConfiguration;
    if (p->sharedMemBytes > MOST_SHARED_BYTES)
        return hipErrorOutOfMemory;

    struct launch *launch = calloc(1, sizeof *launch);
    launch->operation.work = run_body;
    launch->operation.end = end_launch;
    launch->operation.delayed = true;
    launch->module = function->module;
    const unsigned size[6] = {p->gridDim.x,  p->gridDim.y,  p->gridDim.z,
                              p->blockDim.x, p->blockDim.y, p->blockDim.z};
    memcpy(launch->size, size, sizeof size);
    launch->body = body_of(function->name);
    if (launch->body != NULL && (launch->body->count == 0 || p->kernelParams != NULL))
        launch->params = copy_params(launch->body, p->kernelParams);
    else
        launch->body = NULL;
    ++function->module->launches;
    *operation = &launch->operation;
    return hipSuccess;
}

hipError_t emu_hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x,
                                                unsigned grid_y, unsigned grid_z, unsigned block_x,
                                                unsigned block_y, unsigned block_z,
                                                unsigned shared_bytes, hipStream_t stream,
                                                void **params) {
    return emu_hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                     shared_bytes, stream, params, NULL);
}

struct launch_attribute {
    int id, pad;
    union {
        unsigned cluster[3];
        char bytes[64];
    } value;
};
struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    hipStream_t stream;
    const struct launch_attribute *attributes;
    unsigned count;
};
enum { CLUSTER_DIMENSION = 4, FIRST_WITH_CLUSTERS = 125 };

hipError_t kernel_launch_clusters(const void *config, hipFunction_t function, void **params,
                                  void **extra) {
    const struct launch_config *c = config;
    if (stub_version < HIP_7 || stub_capability < FIRST_WITH_CLUSTERS)
        return hipErrorNotSupported;
    if (c->count == 0 || c->attributes[0].id != CLUSTER_DIMENSION)
        return hipErrorInvalidValue;
    for (int i = 0; i < 3; i++)
        if (c->attributes[0].value.cluster[i] == 0 ||
            c->grid[i] % c->attributes[0].value.cluster[i] != 0)
            return hipErrorInvalidValue;
    return emu_hipModuleLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0],
                                     c->block[1], c->block[2], c->shared_bytes, c->stream, params,
                                     extra);
}
