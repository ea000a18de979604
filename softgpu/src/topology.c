/* Describes the machine to ROCr: a host node, and a node for each device. */
#include "layout.h"

#include <string.h>
#include <unistd.h>

enum { GLOBAL_WAVE_SYNCS = 64 };

/* Properties by which ROCr and HIP distinguish targets. */
struct model {
    uint32_t stepping;
    const char *chip;
    uint16_t device_id;
    uint32_t waves_per_simd, vgpr_bytes_per_cu;
    uint32_t family; /* the kernel driver's family number */
};

/* AMDGPU_FAMILY_AI, the family of all GFX9 accelerators. */
enum { FAMILY_AI = 141 };

static const struct model models[] = {
    {6, "vega20", 0x66a1, 10, 256 << 10, FAMILY_AI},
    {8, "arcturus", 0x738c, 10, 512 << 10, FAMILY_AI},
    {10, "aldebaran", 0x7408, 8, 512 << 10, FAMILY_AI},
    {2, "aqua_vanjaram", 0x74a1, 8, 512 << 10, FAMILY_AI},
};

/* Blit kernels choose their grid size by the number of compute units. Few compute units keep copies
 * cheap to emulate, and limit cooperative launches to a size that a CPU can run. */
enum { COMPUTE_UNITS = 8, SIMDS_PER_UNIT = 4, GPU_CACHES = 2, GPU_BANKS = 3 };
enum {
    FIRST_GPU_ID = 0x5000
}; /* the kernel driver derives a gpu_id from the hardware's location */

static const struct model *find_model(const struct softgpu_target *target) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (models[i].stepping == target->stepping)
            return &models[i];
    return &models[0];
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtOpenKFD(void) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (!softgpu_configure())
        return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;
    softgpu_opened();
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtCloseKFD(void) {
    return HSAKMT_STATUS_SUCCESS;
}

/* Returns version 1.6 of the kernel driver's interface, as ROCm 5.2's kernel driver does. ROCr
 * 5.2.3 requires version 1.0 of the interface, and needs version 1.1 to sleep on events. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetVersion(HsaVersionInfo *version) {
    version->KernelInterfaceMajorVersion = 1;
    version->KernelInterfaceMinorVersion = 6;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAcquireSystemProperties(HsaSystemProperties *properties) {
    SOFTGPU_REFUSE_AFTER_FORK();
    memset(properties, 0, sizeof *properties);
    properties->NumNodes = 1 + softgpu_device_count();
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtReleaseSystemProperties(void) {
    return HSAKMT_STATUS_SUCCESS;
}

static void describe_host(HsaNodeProperties *node) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    node->NumCPUCores = cores > 0 ? (HSAuint32)cores : 1;
    node->NumMemoryBanks = 1;
    node->NumCaches = 1;
    node->NumIOLinks = softgpu_device_count();
    node->MaxEngineClockMhzCCompute = 2000;
    node->DrmRenderMinor = -1;
    memcpy(node->AMDName, "cpu", sizeof "cpu");
}

static void set_marketing_name(HsaNodeProperties *node, const char *target) {
    const char *parts[] = {"softgpu ", target, " (emulated)"};
    size_t used = 0;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        for (const char *c = parts[part]; *c && used + 1 < HSA_PUBLIC_NAME_SIZE; c++)
            node->MarketingName[used++] = (HSAuint16)*c;
}

static void describe_units(HsaNodeProperties *node, const struct model *model) {
    node->NumFComputeCores = COMPUTE_UNITS * SIMDS_PER_UNIT;
    node->NumSIMDPerCU = SIMDS_PER_UNIT;
    node->NumShaderBanks = 1;
    node->NumArrays = 1;
    node->NumCUPerArray = COMPUTE_UNITS;
    node->MaxWavesPerSIMD = model->waves_per_simd;
    node->MaxSlotsScratchCU = 32;
    node->WaveFrontSize = 64;
    node->LDSSizeInKB = 64;
    node->VGPRSizePerCU = model->vgpr_bytes_per_cu;
    node->SGPRSizePerCU = 12800;
    node->MaxEngineClockMhzFCompute = 1700;
    node->MaxEngineClockMhzCCompute = 2000;
}

static void describe_device(HsaNodeProperties *node, uint32_t id,
                            const struct softgpu_target *target) {
    const struct model *model = find_model(target);
    describe_units(node, model);
    node->NumMemoryBanks = GPU_BANKS;
    node->NumCaches = GPU_CACHES;
    node->NumIOLinks = softgpu_device_count(); /* links to the host and to every other device */
    node->FComputeIdLo = 0x80000000u + (id << 12);
    node->EngineId.ui32.Major = target->major & 0x3f;
    node->EngineId.ui32.Minor = target->minor & 0xff;
    node->EngineId.ui32.Stepping = target->stepping & 0xff;
    node->EngineId.ui32.uCode = 60;
    node->VendorId = 0x1002;
    node->DeviceId = model->device_id;
    node->LocationId = (2 + id) << 8;
    node->UniqueID = 0x6d67707500000000 + id;
    node->LocalMemSize = softgpu_node_memory(id);
    node->DrmRenderMinor = (HSAint32)(127 + id);
    node->Capability.ui32.DoorbellType = 2; /* HIP stores AQL write indices in doorbells */
    node->Capability.ui32.QueueSizePowerOfTwo = 1;
    node->Capability.ui32.SRAM_EDCSupport = 1;
    node->NumCpQueues = 24;
    node->NumGws = GLOBAL_WAVE_SYNCS;
    node->NumSdmaEngines = 2; /* one engine for each direction */
    node->NumSdmaQueuesPerEngine = 2;
    set_marketing_name(node, target->name);
    memcpy(node->AMDName, model->chip, strlen(model->chip));
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetNodeProperties(HSAuint32 id, HsaNodeProperties *node) {
    SOFTGPU_REFUSE_AFTER_FORK();
    HsaNodeProperties properties = {0};
    struct softgpu_newer_properties newer = {0};
    const struct softgpu_target *target = softgpu_node_target(id);
    if (id != 0 && !target)
        return HSAKMT_STATUS_INVALID_NODE_UNIT;
    if (id == 0) {
        describe_host(&properties);
    } else {
        describe_device(&properties, id, target);
        newer.xcc_count = 1;
        newer.kfd_gpu_id = FIRST_GPU_ID + id;
        newer.family = find_model(target)->family;
    }
    softgpu_layout_node(node, &properties, &newer);
    return HSAKMT_STATUS_SUCCESS;
}

void *softgpu_drm_device(void) {
    enum { ROOM = 1 << 16 };
    static char device[ROOM];
    return device;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetAMDGPUDeviceHandle(HSAuint32 id, void **device);
HSAKMT_STATUS hsaKmtGetAMDGPUDeviceHandle(HSAuint32 id, void **device) {
    if (!softgpu_node_target(id))
        return HSAKMT_STATUS_INVALID_NODE_UNIT;
    *device = softgpu_drm_device();
    return HSAKMT_STATUS_SUCCESS;
}

static void set_bank(HsaMemoryProperties *bank, HSA_HEAPTYPE heap, uint64_t size, uint64_t base) {
    bank->HeapType = heap;
    bank->SizeInBytes = size;
    bank->VirtualBaseAddress = base;
    bank->Width = heap == HSA_HEAPTYPE_SYSTEM ? 64 : 4096;
    bank->MemoryClockMax = 1600;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetNodeMemoryProperties(HSAuint32 id, HSAuint32 count,
                                                           HsaMemoryProperties *banks) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (id > softgpu_device_count())
        return HSAKMT_STATUS_INVALID_NODE_UNIT;
    HsaMemoryProperties all[GPU_BANKS] = {0};
    if (id == 0) {
        set_bank(&all[0], HSA_HEAPTYPE_SYSTEM, softgpu_node_memory(0), 0);
    } else {
        set_bank(&all[0], HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC, softgpu_node_memory(id), 0);
        set_bank(&all[1], HSA_HEAPTYPE_GPU_LDS, 64 << 10, SOFTGPU_SHARED_APERTURE);
        set_bank(&all[2], HSA_HEAPTYPE_GPU_SCRATCH, UINT64_C(1) << 32, SOFTGPU_PRIVATE_APERTURE);
    }
    for (HSAuint32 i = 0; i < count; i++)
        banks[i] = i < GPU_BANKS ? all[i] : (HsaMemoryProperties){0};
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetNodeCacheProperties(HSAuint32 id, HSAuint32 processor,
                                                          HSAuint32 count,
                                                          HsaCacheProperties *caches) {
    SOFTGPU_REFUSE_AFTER_FORK();
    for (HSAuint32 i = 0; i < count; i++) {
        HsaCacheProperties *cache = &caches[i];
        memset(cache, 0, sizeof *cache);
        cache->ProcessorIdLow = processor;
        cache->CacheLevel = i + 1;
        cache->CacheSize = i == 0 ? 16 : 8192; /* KiB */
        cache->CacheLineSize = 64;
        cache->CacheType.ui32.Data = 1;
        cache->CacheType.ui32.CPU = id == 0;
        cache->CacheType.ui32.HSACU = id != 0;
    }
    return HSAKMT_STATUS_SUCCESS;
}

/* Links each pair of nodes, so that devices can access each other's memory. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetNodeIoLinkProperties(HSAuint32 id, HSAuint32 count,
                                                           HsaIoLinkProperties *links) {
    SOFTGPU_REFUSE_AFTER_FORK();
    uint32_t peer = 0;
    for (HSAuint32 i = 0; i < count; i++, peer++) {
        peer += peer == id;
        const HsaIoLinkProperties link = {
            .IoLinkType = HSA_IOLINKTYPE_PCIEXPRESS,
            .NodeFrom = id,
            .NodeTo = peer,
            .Weight = 20,
        };
        softgpu_layout_link(links, i, &link);
    }
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetClockCounters(HSAuint32 id, HsaClockCounters *counters) {
    (void)id;
    counters->SystemClockFrequencyHz = 1000000000;
    counters->SystemClockCounter = counters->CPUClockCounter = counters->GPUClockCounter =
        softgpu_now();
    return HSAKMT_STATUS_SUCCESS;
}
