/* Devices: their number, their attributes, and the calling thread's device. */
#include "cuhip.h"

#include <string.h>

hipError_t device_count(int *count) {
    if (!count)
        return hipErrorInvalidValue;
    *count = cuda_device_count;
    return hipSuccess;
}

hipError_t device_get(int *device) {
    if (!device)
        return hipErrorInvalidValue;
    if (!thread_state.ready)
        (void)context_adopt();
    *device = thread_state.device;
    return hipSuccess;
}

/* The context changes at the next call that needs a context. */
hipError_t device_set(int device) {
    if (device < 0 || device >= cuda_device_count)
        return hipErrorInvalidDevice;
    if (!thread_state.ready || device != thread_state.device)
        thread_state.ready = false;
    thread_state.device = device;
    thread_state.chosen = true;
    return hipSuccess;
}

hipError_t device_name(char *name, int length, hipDevice_t device) {
    CUdevice handle;
    char whole[256];
    if (!name || length <= 0)
        return hipErrorInvalidValue;
    hipError_t error = device_handle(device, &handle);
    if (!error)
        error = from_cuda(cuda.DeviceGetName(whole, sizeof whole, handle));
    if (error || strlen(whole) >= (size_t)length) /* NVIDIA's driver would truncate the name */
        return error ? error : hipErrorInvalidValue;
    strcpy(name, whole);
    return hipSuccess;
}

hipError_t device_pci(char *id, int length, int device) {
    CUdevice handle;
    if (!id || length <= 0)
        return hipErrorInvalidValue;
    const hipError_t error = device_handle(device, &handle);
    return error ? error : from_cuda(cuda.DeviceGetPCIBusId(id, length, handle));
}

hipError_t device_total(size_t *bytes, int device) {
    CUdevice handle;
    if (!bytes)
        return hipErrorInvalidValue;
    const hipError_t error = device_handle(device, &handle);
    return error ? error : from_cuda(cuda.DeviceTotalMem(bytes, handle));
}

/* Stores the version of the HIP whose ABI cuhip provides. */
hipError_t version_of_hip(int *version) {
    if (!version)
        return hipErrorInvalidValue;
    *version = 50221153;
    return hipSuccess;
}

static int driver_attribute(int attribute) {
    switch (attribute) {
#define ATTRIBUTE(hip, driver, name)                                                               \
    case hip:                                                                                      \
        return driver;
#include "attributes.def"
#undef ATTRIBUTE
    default:
        return 0;
    }
}

hipError_t device_attribute(int *value, int attribute, int device) {
    enum { LARGE_BAR = 10011 };
    CUdevice handle;
    if (!value)
        return hipErrorInvalidValue;
    const hipError_t error = device_handle(device, &handle);
    if (error)
        return error;
    if (attribute == LARGE_BAR) {
        *value = 0; /* the driver maps no device memory into the host's address space */
        return hipSuccess;
    }
    const int known = driver_attribute(attribute);
    return known ? from_cuda(cuda.DeviceGetAttribute(value, known, handle)) : hipErrorInvalidValue;
}

hipError_t device_capability(int *major, int *minor, int device) {
    enum { MAJOR = 23, MINOR = 61 };
    const hipError_t error = device_attribute(major, MAJOR, device);
    return error ? error : device_attribute(minor, MINOR, device);
}

/* A device attribute of HIP, and the address at which read_attributes stores the attribute's value.
 * If the driver does not know the attribute, the value stays 0. */
struct wish {
    int attribute;
    int *value;
};

static void read_attributes(const struct wish *wishes, size_t count, int device) {
    for (size_t i = 0; i < count; i++)
        (void)device_attribute(wishes[i].value, wishes[i].attribute, device);
}

hipError_t device_properties(hipDeviceProp_t *p, int device) {
    enum {
#define ATTRIBUTE(hip, driver, name) name = hip,
#include "attributes.def"
#undef ATTRIBUTE
    };
    CUdevice handle;
    if (!p)
        return hipErrorInvalidValue;
    hipError_t error = device_handle(device, &handle);
    if (error)
        return error;
    memset(p, 0, sizeof *p);
    int shared = 0, shared_all = 0, constants = 0, pitch = 0, texture = 0, texture_pitch = 0;
    const struct wish wishes[] = {
        {MaxSharedMemoryPerBlock, &shared},
        {SharedMemPerMultiprocessor, &shared_all},
        {TotalConstantMemory, &constants},
        {MaxPitch, &pitch},
        {TextureAlignment, &texture},
        {TexturePitchAlignment, &texture_pitch},
        {MaxRegistersPerBlock, &p->registers_per_block},
        {WarpSize, &p->warp_size},
        {MaxThreadsPerBlock, &p->threads_per_block},
        {MaxBlockDimX, &p->block_size[0]},
        {MaxBlockDimY, &p->block_size[1]},
        {MaxBlockDimZ, &p->block_size[2]},
        {MaxGridDimX, &p->grid_size[0]},
        {MaxGridDimY, &p->grid_size[1]},
        {MaxGridDimZ, &p->grid_size[2]},
        {ClockRate, &p->clock_rate},
        {ClockRate, &p->clock_instruction_rate},
        {MemoryClockRate, &p->memory_clock_rate},
        {MemoryBusWidth, &p->memory_bus_width},
        {ComputeCapabilityMajor, &p->major},
        {ComputeCapabilityMinor, &p->minor},
        {MultiprocessorCount, &p->multiprocessors},
        {L2CacheSize, &p->l2_bytes},
        {MaxThreadsPerMultiProcessor, &p->threads_per_multiprocessor},
        {ComputeMode, &p->compute_mode},
        {ConcurrentKernels, &p->concurrent_kernels},
        {PciDomainID, &p->pci_domain},
        {PciBusId, &p->pci_bus},
        {PciDeviceId, &p->pci_device},
        {IsMultiGpuBoard, &p->is_multi_gpu_board},
        {CanMapHostMemory, &p->can_map_host_memory},
        {Integrated, &p->integrated},
        {CooperativeLaunch, &p->cooperative_launch},
        {KernelExecTimeout, &p->kernel_timeout},
        {EccEnabled, &p->ecc},
        {TccDriver, &p->tcc},
        {ManagedMemory, &p->managed_memory},
        {DirectManagedMemAccessFromHost, &p->direct_managed_access_from_host},
        {ConcurrentManagedAccess, &p->concurrent_managed_access},
        {PageableMemoryAccess, &p->pageable_access},
        {PageableMemoryAccessUsesHostPageTables, &p->pageable_access_by_host_tables},
    };
    read_attributes(wishes, sizeof wishes / sizeof *wishes, device);
    p->shared_bytes_per_block = (size_t)shared;
    p->shared_bytes_per_multiprocessor = (size_t)shared_all;
    p->constant_bytes = (size_t)constants;
    p->pitch = (size_t)pitch;
    p->texture_alignment = (size_t)texture;
    p->texture_pitch_alignment = (size_t)texture_pitch;
    error = from_cuda(cuda.DeviceTotalMem(&p->total_global_bytes, handle));
    return error ? error : device_name(p->name, sizeof p->name, device);
}

/* ---- other devices ---- */

hipError_t device_can_access_peer(int *can, int device, int peer) {
    CUdevice handle, other;
    if (!can)
        return hipErrorInvalidValue;
    hipError_t error = device_handle(device, &handle);
    if (!error)
        error = device_handle(peer, &other);
    if (error)
        return error;
    *can = 0;
    return device == peer ? hipSuccess : from_cuda(cuda.DeviceCanAccessPeer(can, handle, other));
}

hipError_t device_enable_peer(int peer, unsigned flags) {
    CUcontext context;
    const hipError_t error = context_of(peer, &context);
    return error ? error : from_cuda(cuda.CtxEnablePeerAccess(context, flags));
}

hipError_t device_disable_peer(int peer) {
    CUcontext context;
    const hipError_t error = context_of(peer, &context);
    return error ? error : from_cuda(cuda.CtxDisablePeerAccess(context));
}

hipError_t device_default_pool(hipMemPool_t *pool, int device) {
    CUdevice handle;
    if (!pool)
        return hipErrorInvalidValue;
    const hipError_t error = device_handle(device, &handle);
    return error ? error : from_cuda(cuda.DeviceGetDefaultMemPool(pool, handle));
}
