/* HIP's types and numbers as far as cuhip serves them, laid out as in HIP 5. */
#ifndef CUHIP_HIP_TYPES_H
#define CUHIP_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef int hipDevice_t;
typedef int hipError_t;

enum {
#define HIP_ERROR(number, name) name = number,
#include "errors.def"
#undef HIP_ERROR
};

enum { hipMemcpyDefault = 4 };
enum { hipStreamNonBlocking = 1 };
enum { hipMemAttachGlobal = 1, hipMemAttachHost = 2 };

/* Event flags: the driver's, and those that only say how AMD's caches are to be flushed. */
enum { EVENT_FLAGS_OF_CUDA = 1 | 2 | 4 };
#define EVENT_FLAGS_OF_AMD 0xE0000000u

/* Host allocation flags: the driver's (portable, mapped, write-combined), and AMD's. */
enum { HOST_FLAGS_OF_CUDA = 1 | 2 | 4 };
#define HOST_FLAGS_OF_AMD 0xE0000000u

typedef struct {
    uint32_t x, y, z;
} dim3;

/* memory_type is 0 for the host's, 1 for a device's. */
typedef struct {
    int memory_type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned allocation_flags;
} hipPointerAttribute_t;

/* The layout of HIP 5, which this library's SONAME stands for. */
typedef struct {
    char name[256];
    size_t total_global_bytes;
    size_t shared_bytes_per_block;
    int registers_per_block;
    int warp_size;
    int threads_per_block;
    int block_size[3];
    int grid_size[3];
    int clock_rate;
    int memory_clock_rate;
    int memory_bus_width;
    size_t constant_bytes;
    int major, minor;
    int multiprocessors;
    int l2_bytes;
    int threads_per_multiprocessor;
    int compute_mode;
    int clock_instruction_rate;
    unsigned arch_features;
    int concurrent_kernels;
    int pci_domain, pci_bus, pci_device;
    size_t shared_bytes_per_multiprocessor;
    int is_multi_gpu_board;
    int can_map_host_memory;
    int gcn_arch;
    char gcn_arch_name[256];
    int integrated;
    int cooperative_launch;
    int cooperative_multi_device_launch;
    int texture_sizes[7];
    unsigned *hdp_registers[2];
    size_t pitch;
    size_t texture_alignment, texture_pitch_alignment;
    int kernel_timeout;
    int ecc;
    int tcc;
    int cooperative_multi_device_unmatched[4];
    int is_large_bar;
    int asic_revision;
    int managed_memory;
    int direct_managed_access_from_host;
    int concurrent_managed_access;
    int pageable_access;
    int pageable_access_by_host_tables;
} hipDeviceProp_t;

_Static_assert(sizeof(hipDeviceProp_t) == 792 && offsetof(hipDeviceProp_t, arch_features) == 356 &&
                   offsetof(hipDeviceProp_t, pitch) == 712,
               "as in HIP 5.2");

#endif
