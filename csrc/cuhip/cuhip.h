/* Declarations for all parts of cuhip: the calling thread's state, errors, devices. */
#ifndef CUHIP_H
#define CUHIP_H

#include "cuda.h"

#include <stdbool.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- messages and errors ---- */

/* Prints one line on stderr, with a prefix. */
void cuhip_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the HIP error for an error of the driver. Most errors have the same number in HIP and in
 * the driver. If HIP has no number for an error, the function prints the error's name in the
 * driver, once for each error. */
hipError_t error_of_driver(CUresult result);

static inline hipError_t from_cuda(CUresult result) {
    return LIKELY(result == CUDA_SUCCESS) ? hipSuccess : error_of_driver(result);
}

/* ---- the calling thread ---- */

struct thread_state {
    bool ready;  /* a context of `device` is current */
    bool chosen; /* the program called hipSetDevice: cuhip no longer adopts contexts of other
                  * libraries */
    int device;
    hipError_t last;
};

/* With the initial-exec model an access to a thread-local variable costs one load. With the default
 * model of a shared library, each access would call __tls_get_addr. */
extern __thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

/* Makes the thread's device current. Keeps a context that another library has made current, unless
 * the thread has called hipSetDevice. Otherwise makes the primary context of the thread's device
 * current; cuhip retains a primary context at its first use. */
hipError_t context_bind(void);

/* Adopts the device of a context that another library has made current, unless the thread has
 * chosen a device. Binds nothing. */
bool context_adopt(void);

/* Costs a load and a test once the thread has its context. */
static inline hipError_t context_enter(void) {
    return LIKELY(thread_state.ready) ? hipSuccess : context_bind();
}

/* Finds the primary context of a device. */
hipError_t context_of(int device, CUcontext *context);

/* ---- what entry.c calls, by file ---- */

hipError_t device_handle(int ordinal, CUdevice *device);

/* Finds the ordinal of a stream's device. Returns hipErrorNotSupported if the driver is older than
 * CUDA 12.8. */
hipError_t stream_device(hipStream_t stream, int *ordinal);
hipError_t device_count(int *count);
hipError_t device_get(int *device);
hipError_t device_set(int device);
hipError_t device_name(char *name, int length, hipDevice_t device);
hipError_t device_pci(char *id, int length, int device);
hipError_t device_total(size_t *bytes, int device);
hipError_t device_capability(int *major, int *minor, int device);
hipError_t version_of_hip(int *version);
hipError_t device_attribute(int *value, int attribute, int device);
hipError_t device_properties(hipDeviceProp_t *properties, int device);
hipError_t device_can_access_peer(int *can, int device, int peer);
hipError_t device_enable_peer(int peer, unsigned flags);
hipError_t device_disable_peer(int peer);
hipError_t device_default_pool(hipMemPool_t *pool, int device);

hipError_t module_load(hipModule_t *module, const void *image);
hipError_t module_load_with(hipModule_t *module, const void *image, unsigned count, int *options,
                            void **values);
hipError_t module_unload(hipModule_t module);
hipError_t module_function(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t module_global(void **address, size_t *bytes, hipModule_t module, const char *name);

/* The arguments that all kinds of launches have. */
struct launch {
    hipFunction_t function;
    dim3 grid, block;
    unsigned shared_bytes;
    hipStream_t stream;
    void **params;
};
hipError_t launch(const struct launch *launch, void **extra);
hipError_t launch_cooperative(const struct launch *launch);
/* Prepares a launch for a graph, and stores the list `extra` in `translated`, in the driver's form.
 */
hipError_t launch_prepare(const struct launch *launch, void **extra, void **translated);
hipError_t launch_cluster(const struct launch *launch, dim3 cluster, bool cooperative,
                          void **extra);
hipError_t launch_symbol(const void *symbol);
/* Clears the record of how much workgroup memory each function may use, because the driver may
 * reuse handles. */
void launch_invalidate(void);

struct graph_copy {
    hipGraph_t graph;
    const hipGraphNode_t *after;
    size_t count;
    void *to;
    const void *from;
    size_t bytes;
};
hipError_t graph_add_kernel(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                            size_t count, const hipKernelNodeParams *params);
hipError_t graph_add_fill(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                          size_t count, const hipMemsetParams *params);
hipError_t graph_add_copy(hipGraphNode_t *node, const struct graph_copy *copy);

hipError_t stream_create(hipStream_t *stream, unsigned flags);
hipError_t stream_create_with_priority(hipStream_t *stream, unsigned flags, int priority);
hipError_t stream_destroy(hipStream_t stream);
hipError_t stream_wait_event(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t event_create(hipEvent_t *event, unsigned flags);
hipError_t event_elapsed(float *milliseconds, hipEvent_t start, hipEvent_t stop);
hipError_t event_call(CUresult (*function)(hipEvent_t), hipEvent_t event);
hipError_t event_record(hipEvent_t event, hipStream_t stream);

hipError_t memory_allocate(void **address, size_t bytes);
hipError_t memory_allocate_managed(void **address, size_t bytes, unsigned flags);
hipError_t memory_allocate_host(void **address, size_t bytes, unsigned flags);
hipError_t memory_allocate_async(void **address, size_t bytes, hipStream_t stream);
hipError_t memory_free(void *address);
hipError_t memory_free_host(void *address);
hipError_t memory_free_async(void *address, hipStream_t stream);
hipError_t memory_register(void *address, size_t bytes, unsigned flags);
hipError_t memory_unregister(void *address);
hipError_t memory_device_pointer(void **device, void *host);
hipError_t memory_info(size_t *available, size_t *total);
hipError_t memory_range(void **base, size_t *bytes, void *address);
hipError_t memory_attribute(void *value, int attribute, const void *address);
hipError_t memory_attributes(hipPointerAttribute_t *attributes, const void *address);

hipError_t copy(void *to, const void *from, size_t bytes, int kind);
hipError_t copy_async(void *to, const void *from, size_t bytes, int kind, hipStream_t stream);
hipError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                     hipStream_t stream);
hipError_t fill8(void *to, unsigned char value, size_t count, hipStream_t stream);
hipError_t fill16(void *to, unsigned short value, size_t count, hipStream_t stream);
hipError_t fill32(void *to, unsigned value, size_t count, hipStream_t stream);
/* Waits after a call that HIP documents as synchronous. */
hipError_t then_wait(hipError_t error, hipStream_t stream);

#endif
