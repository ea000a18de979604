/* Functions of the driver that this device has no use for. ROCr asks for all of them by name, so
 * they must be there; "not supported" is an answer that it knows how to live with. */
#include "thunk.h"

/* Answer without a look at their arguments. The C names differ, as <hsakmt.h> declares some of
 * them. */
#define NOT_SUPPORTED(name)                                                                        \
    SOFTGPU_EXPORT HSAKMT_STATUS unsupported_##name(void) __asm__(#name);                          \
    HSAKMT_STATUS unsupported_##name(void) {                                                       \
        return HSAKMT_STATUS_NOT_SUPPORTED;                                                        \
    }
#include "unsupported.def"
#undef NOT_SUPPORTED

/* No core dumps, no debugging. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities);
HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities) {
    *capabilities = 0;
    return HSAKMT_STATUS_SUCCESS;
}

/* Without it faults go through the queue's inactive signal, not through the exception debugger's
 * mask, and no trap handler has to run. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeEnable(void *debug, bool set_up_trap_registers) {
    (void)debug, (void)set_up_trap_registers;
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeDisable(void) {
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

/* Installed for every device, run by none: a fault ends the process before a trap would. */
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

/* A kernel may not touch memory that was never registered. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetXNACKMode(HSAint32 *enabled) {
    *enabled = 0;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetXNACKMode(HSAint32 enabled) {
    return enabled ? HSAKMT_STATUS_NOT_SUPPORTED : HSAKMT_STATUS_SUCCESS;
}
