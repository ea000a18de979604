/* Implements the hook that ROCr 7 has for a software driver. With HSA_ENABLE_DTIF=1 ROCr loads
 * libdtif.so, and looks up all driver functions by name, including libdrm's. ROCr then rings
 * doorbells by a call and uses no interrupts. Without interrupts, ROCr polls its signals, and the
 * device reports faults only through the queue. */
#include "layout.h"
#include "queue.h"

#include <errno.h>

/* Selects the layouts of ROCr 7, because ROCr 7 calls this function before all other functions of
 * the driver. ROCr accepts any handle except NULL. */
SOFTGPU_EXPORT void *DtifCreate(const char *name);
void *DtifCreate(const char *name) {
    static char handle;
    (void)name;
    softgpu_layout_set(SOFTGPU_LAYOUT_7);
    return &handle;
}

SOFTGPU_EXPORT void DtifDestroy(void);
void DtifDestroy(void) {}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtModelEnabled(bool *enabled);
HSAKMT_STATUS hsaKmtModelEnabled(bool *enabled) {
    *enabled = false; /* disables a second hook of ROCr for a software driver */
    return HSAKMT_STATUS_SUCCESS;
}

/* Wakes the queue's thread by a store to the doorbell. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtQueueRingDoorbell(HSA_QUEUEID id, HSAuint64 value);
HSAKMT_STATUS hsaKmtQueueRingDoorbell(HSA_QUEUEID id, HSAuint64 value) {
    struct softgpu_queue *queue = (struct softgpu_queue *)(uintptr_t)id;
    if (!queue)
        return HSAKMT_STATUS_INVALID_HANDLE;
    *(volatile uint64_t *)queue->doorbell.bell = value;
    return HSAKMT_STATUS_SUCCESS;
}

/* ---- libdrm, of which only the devices themselves are emulated ---- */

SOFTGPU_EXPORT int amdgpu_device_initialize(int file, uint32_t *major, uint32_t *minor,
                                            void **device);
int amdgpu_device_initialize(int file, uint32_t *major, uint32_t *minor, void **device) {
    (void)file;
    *major = 3;
    *minor = 57;
    *device = softgpu_drm_device();
    return 0;
}

SOFTGPU_EXPORT int amdgpu_device_deinitialize(void *device);
int amdgpu_device_deinitialize(void *device) {
    (void)device;
    return 0;
}

/* The first members of struct amdgpu_gpu_info; the other members describe graphics and are not
 * written. */
struct gpu_info {
    uint32_t asic_id, chip_rev, chip_external_rev, family_id;
    uint64_t ids_flags;
};

SOFTGPU_EXPORT int amdgpu_query_gpu_info(void *device, struct gpu_info *info);
int amdgpu_query_gpu_info(void *device, struct gpu_info *info) {
    if (!device || !info)
        return -EINVAL;
    *info = (struct gpu_info){0};
    return 0;
}

/* Returns -1, because the device has no file. */
SOFTGPU_EXPORT int amdgpu_device_get_fd(void *device);
int amdgpu_device_get_fd(void *device) {
    (void)device;
    return -1;
}

/* Defines a function for buffers that are shared with other processes or with graphics; the
 * function returns -ENOTSUP. */
#define NOT_SUPPORTED(name)                                                                        \
    SOFTGPU_EXPORT int name(void);                                                                 \
    int name(void) {                                                                               \
        return -ENOTSUP;                                                                           \
    }
NOT_SUPPORTED(amdgpu_bo_cpu_map)
NOT_SUPPORTED(amdgpu_bo_export)
NOT_SUPPORTED(amdgpu_bo_free)
NOT_SUPPORTED(amdgpu_bo_import)
NOT_SUPPORTED(amdgpu_bo_query_info)
NOT_SUPPORTED(amdgpu_bo_set_metadata)
NOT_SUPPORTED(amdgpu_bo_va_op)
NOT_SUPPORTED(drmCommandWriteRead)
#undef NOT_SUPPORTED
