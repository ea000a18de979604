/* Device memory, host memory, and managed memory. */
#include "beyond.h"
#include "cuhip.h"

/* As with AMD's HIP, a size of 0 is no error. */
static bool is_empty(void **address, size_t bytes) {
    if (bytes == 0)
        *address = NULL;
    return bytes == 0;
}

hipError_t memory_allocate(void **address, size_t bytes) {
    if (!address)
        return hipErrorInvalidValue;
    return is_empty(address, bytes) ? hipSuccess : from_cuda(cuda.MemAlloc(address, bytes));
}

hipError_t memory_allocate_managed(void **address, size_t bytes, unsigned flags) {
    if (!address || bytes == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemAllocManaged(address, bytes, flags));
}

/* As in HIP, every context and every device may use this memory. */
hipError_t memory_allocate_host(void **address, size_t bytes, unsigned flags) {
    if (!address || (flags & ~(HOST_FLAGS_OF_CUDA | HOST_FLAGS_OF_AMD)))
        return hipErrorInvalidValue;
    if (is_empty(address, bytes))
        return hipSuccess;
    return from_cuda(cuda.MemHostAlloc(address, bytes,
                                       (flags & HOST_FLAGS_OF_CUDA) | CU_MEMHOSTREGISTER_PORTABLE |
                                           CU_MEMHOSTREGISTER_DEVICEMAP));
}

hipError_t memory_allocate_async(void **address, size_t bytes, hipStream_t stream) {
    if (!address || bytes == 0)
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemAllocAsync(address, bytes, stream));
}

/* Returns the type of the memory at an address: 0 if the driver does not know the address. */
static int memory_type(const void *address) {
    unsigned type = 0;
    const int attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *value = &type;
    return cuda.PointerGetAttributes(1, &attribute, &value, address) == CUDA_SUCCESS ? (int)type
                                                                                     : 0;
}

int mgpu_cuhip_memory_type(const void *address) {
    return context_enter() == hipSuccess ? memory_type(address) : 0;
}

/* hipFree and hipHostFree accept both device memory and host memory. */
hipError_t memory_free(void *address) {
    if (!address)
        return hipSuccess;
    const CUresult result = cuda.MemFree(address);
    if (result == CUDA_ERROR_INVALID_VALUE && memory_type(address) == CU_MEMORYTYPE_HOST)
        return from_cuda(cuda.MemFreeHost(address));
    return from_cuda(result);
}

hipError_t memory_free_host(void *address) {
    if (!address)
        return hipSuccess;
    if (memory_type(address) == CU_MEMORYTYPE_DEVICE)
        return from_cuda(cuda.MemFree(address));
    return from_cuda(cuda.MemFreeHost(address));
}

hipError_t memory_free_async(void *address, hipStream_t stream) {
    return address ? from_cuda(cuda.MemFreeAsync(address, stream)) : hipErrorInvalidValue;
}

hipError_t memory_register(void *address, size_t bytes, unsigned flags) {
    if (!address)
        return hipErrorInvalidValue;
    if (bytes == 0)
        return hipErrorOutOfMemory; /* as AMD's HIP 5.2.3 */
    return from_cuda(cuda.MemHostRegister(
        address, bytes,
        (flags & HOST_FLAGS_OF_CUDA) | CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

hipError_t memory_unregister(void *address) {
    return address ? from_cuda(cuda.MemHostUnregister(address)) : hipErrorHostMemoryNotRegistered;
}

hipError_t memory_device_pointer(void **device, void *host) {
    if (!device || !host)
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemHostGetDevicePointer(device, host, 0));
}

hipError_t memory_info(size_t *available, size_t *total) {
    if (!available || !total)
        return hipErrorInvalidValue;
    return from_cuda(cuda.MemGetInfo(available, total));
}

hipError_t memory_range(void **base, size_t *bytes, void *address) {
    const CUresult result = cuda.MemGetAddressRange(base, bytes, address);
    return result == CUDA_ERROR_NOT_FOUND ? hipErrorInvalidDevicePointer : from_cuda(result);
}

/* HIP and the driver have equal numbers for these attributes. */
hipError_t memory_attribute(void *value, int attribute, const void *address) {
    if (!value || !memory_type(address))
        return hipErrorInvalidValue;
    return from_cuda(cuda.PointerGetAttributes(1, &attribute, &value, address));
}

hipError_t memory_attributes(hipPointerAttribute_t *attributes, const void *address) {
    unsigned type = 0, managed = 0, flags = 0;
    int device = 0;
    void *on_device = NULL, *on_host = NULL;
    const int wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                          CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &managed, &device, &on_device, &on_host};
    if (!attributes)
        return hipErrorInvalidValue;
    const hipError_t error = from_cuda(
        cuda.PointerGetAttributes(sizeof wanted / sizeof *wanted, wanted, values, address));
    if (error || !type)
        return hipErrorInvalidValue;
    if (type == CU_MEMORYTYPE_HOST && !managed)
        (void)cuda.MemHostGetFlags(&flags, on_host);
    *attributes = (hipPointerAttribute_t){
        .memory_type = type == CU_MEMORYTYPE_DEVICE || managed,
        .device = device,
        .device_pointer = on_device,
        .host_pointer = on_host,
        .is_managed = managed != 0,
        .allocation_flags = flags,
    };
    return hipSuccess;
}
