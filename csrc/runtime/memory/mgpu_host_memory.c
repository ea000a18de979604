/* mgpuMemHostRegister and related functions, which make host memory accessible to kernels.
 *
 * After the program has unregistered memory, the library keeps the registration in HIP on two
 * conditions. The library must be able to watch the pages, and no other code may call HIP
 * (memory/registrations.h). Without the watch, pages would stay pinned after the program has
 * unmapped the pages, and new memory at the same address would not be pinned. */
#include "memory/registrations.h"
#include "streams/lazy_sync.h"

static struct advice not_registered = {
    .text = "host memory at %p (%llu bytes) could not be registered: is it mapped, writable, and "
            "not registered already?"};
static struct advice not_unregistered = {
    .text = "host memory at %p could not be unregistered: it was not registered from this address"};
static struct advice strided = {
    .text = "a memref of rank %lld is not contiguous. Like stock, the library registers only the "
            "number of bytes that the elements take: kernels cannot access elements beyond"};
static struct advice no_device_pointer = {.text =
                                              "host memory at %p has no device address: register "
                                              "the memory with gpu.host_register first"};

void impl_mgpuMemHostRegister(void *ptr, uint64_t sizeBytes) {
    (void)thread_get();
    const hipError_t error = registration_acquire(ptr, sizeBytes);
    if (error != hipSuccess) {
        report_failure("hipHostRegister(ptr, sizeBytes, 0)", error, &not_registered, ptr,
                       (unsigned long long)sizeBytes);
        return;
    }
    lazy_visible(1);
}

void impl_mgpuMemHostUnregister(void *ptr) {
    (void)thread_get();
    const hipError_t error = registration_release(ptr);
    if (error != hipSuccess) {
        report_failure("hipHostUnregister(ptr)", error, &not_unregistered, ptr);
        return;
    }
    lazy_visible(-1);
}

void impl_mgpuMemHostRegisterMemRef(int64_t rank, struct mgpu_memref *descriptor,
                                    int64_t elementSizeBytes) {
    const int64_t *sizes = descriptor->sizes_and_strides, *strides = sizes + rank;
    int64_t count = 1; /* elements */
    bool dense = true; /* the elements are contiguous */
    for (int64_t i = rank - 1; i >= 0; i--) {
        dense &= strides[i] == count || sizes[i] == 1;
        count *= sizes[i];
    }
    if (!dense)
        report_once(&strided, (long long)rank);
    impl_mgpuMemHostRegister(memref_first(descriptor, elementSizeBytes),
                             memref_bytes(rank, descriptor, elementSizeBytes));
}

void impl_mgpuMemHostUnregisterMemRef(int64_t rank, struct mgpu_memref *descriptor,
                                      int64_t elementSizeBytes) {
    (void)rank;
    impl_mgpuMemHostUnregister(memref_first(descriptor, elementSizeBytes));
}

/* Returns the device pointer of host memory. As with stock, the pointer is for device 0, and device
 * 0 becomes the thread's current device. */
static void *device_pointer(void *host) {
    void *device = NULL;
    (void)thread_get();
    registrations_yield(host, 1);
    REPORT("hipSetDevice(0)", hip.SetDevice(0), NULL);
    REPORT("hipHostGetDevicePointer((void **)devicePtr, hostPtr, 0)",
           hip.HostGetDevicePointer(&device, host, 0), &no_device_pointer, host);
    return device;
}

struct mgpu_memref_float impl_mgpuMemGetDeviceMemRef1dFloat(float *allocated, float *aligned,
                                                            int64_t offset, int64_t size,
                                                            int64_t stride) {
    (void)allocated;
    float *device = device_pointer(aligned);
    return (struct mgpu_memref_float){device, device, offset, size, stride};
}

struct mgpu_memref_int32 impl_mgpuMemGetDeviceMemRef1dInt32(int32_t *allocated, int32_t *aligned,
                                                            int64_t offset, int64_t size,
                                                            int64_t stride) {
    (void)allocated;
    int32_t *device = device_pointer(aligned);
    return (struct mgpu_memref_int32){device, device, offset, size, stride};
}
