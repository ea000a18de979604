/* Defines driver functions that this device does not implement. ROCr looks up all these functions
 * by name, so they must exist; ROCr accepts "not supported" as a result. */
#include "thunk.h"

/* Each function returns without reading its arguments. The C names differ from the exported names,
 * because <hsakmt.h> declares some functions with other types. */
#define NOT_SUPPORTED(name)                                                                        \
    SOFTGPU_EXPORT HSAKMT_STATUS unsupported_##name(void) __asm__(#name);                          \
    HSAKMT_STATUS unsupported_##name(void) {                                                       \
        return HSAKMT_STATUS_NOT_SUPPORTED;                                                        \
    }
#include "unsupported.def"
#undef NOT_SUPPORTED

/* The device supports neither core dumps nor debugging. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities);
HSAKMT_STATUS hsaKmtGetRuntimeCapabilities(HSAuint32 *capabilities) {
    *capabilities = 0;
    return HSAKMT_STATUS_SUCCESS;
}

/* Returns "not supported". As a result, ROCr reads a queue's faults from the queue's inactive
 * signal, not from the debugger's exception mask. The device can set the inactive signal without a
 * trap handler. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeEnable(void *debug, bool set_up_trap_registers) {
    (void)debug, (void)set_up_trap_registers;
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRuntimeDisable(void) {
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

/* Accepts ROCr's trap handler, but never runs the handler, because a fault ends the process
 * earlier. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetTrapHandler(HSAuint32 node, void *handler, HSAuint64 size,
                                                  void *buffer, HSAuint64 buffer_size) {
    (void)node, (void)handler, (void)size, (void)buffer, (void)buffer_size;
    return HSAKMT_STATUS_SUCCESS;
}

/* Ignores the caching policy, because host and device share coherent memory. */
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

/* Reports that XNACK is off, so a kernel must not access memory that was never registered. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtGetXNACKMode(HSAint32 *enabled) {
    *enabled = 0;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetXNACKMode(HSAint32 enabled) {
    return enabled ? HSAKMT_STATUS_NOT_SUPPORTED : HSAKMT_STATUS_SUCCESS;
}
