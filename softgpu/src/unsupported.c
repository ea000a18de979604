/* Functions of the driver that this device does not implement. ROCr looks up all of them by name,
 * so they must exist; it accepts "not supported" as an answer. */
#include "thunk.h"

/* Each returns without looking at its arguments. The names in C differ, as <hsakmt.h> declares some
 * of them. */
#define NOT_SUPPORTED(name)                                                                        \
    SOFTGPU_EXPORT HSAKMT_STATUS unsupported_##name(void) __asm__(#name);                          \
    HSAKMT_STATUS unsupported_##name(void) {                                                       \
        return HSAKMT_STATUS_NOT_SUPPORTED;                                                        \
    }
#include "unsupported.def"
#undef NOT_SUPPORTED

/* There are no core dumps and no debugging. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities);
HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities) {
    *capabilities = 0;
    return HSAKMT_STATUS_SUCCESS;
}

/* Faults therefore go through the queue's inactive signal, not through the exception debugger's
 * mask, and no trap handler has to run. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeEnable(void *debug, bool set_up_trap_registers) {
    (void)debug, (void)set_up_trap_registers;
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeDisable(void) {
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

/* A trap handler is installed for every device and never run: a fault ends the process earlier. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetTrapHandler(HSAuint32 node, void *handler, HSAuint64 size,
                                                  void *buffer, HSAuint64 buffer_size) {
    (void)node, (void)handler, (void)size, (void)buffer, (void)buffer_size;
    return HSAKMT_STATUS_SUCCESS;
}

/* There is one memory, and it is coherent. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetMemoryPolicy(HSAuint32 node, HSAuint32 policy,
                                                   HSAuint32 alternate_policy,
                                                   void *alternate_memory, HSAuint64 size) {
    (void)node, (void)policy, (void)alternate_policy, (void)alternate_memory, (void)size;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetTileConfig(HSAuint32 node, HsaGpuTileConfig *config) {
    (void)node;
    config->NumTileConfigs = config->NumMacroTileConfigs = config->GbAddrConfig = 0;
    return HSAKMT_STATUS_SUCCESS;
}

/* A kernel may not access memory that was never registered. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetXNACKMode(HSAint32 *enabled) {
    *enabled = 0;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetXNACKMode(HSAint32 enabled) {
    return enabled ? HSAKMT_STATUS_NOT_SUPPORTED : HSAKMT_STATUS_SUCCESS;
}
