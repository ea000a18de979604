/* Declares the layouts in which different ROCr releases read the driver's description of a node.
 *
 * The driver's files fill in the structures of Debian 12's <hsakmt.h> (ROCr 5.2.3). The ROCr of
 * Debian 13 (6.1.2) uses the same layout, and has names for some formerly reserved bytes. ROCr
 * 7.2.4 inserts additional words. No earlier release uses DTIF. The functions of this header write
 * the two structures that get additional words: HsaNodeProperties and HsaIoLinkProperties. */
#ifndef SOFTGPU_LAYOUT_H
#define SOFTGPU_LAYOUT_H

#include "thunk.h"

enum softgpu_layout { SOFTGPU_LAYOUT_5, SOFTGPU_LAYOUT_7 };

/* Sets the ROCr release that calls the driver; DtifCreate calls this function before ROCr's first
 * query. The initial layout is SOFTGPU_LAYOUT_5. */
void softgpu_layout_set(enum softgpu_layout layout);

/* The members of HsaNodeProperties that have names since ROCr 6.1. */
struct softgpu_newer_properties {
    HSAuint32 xcc_count, kfd_gpu_id, family;
};

/* Writes a structure in the layout of the calling ROCr release. */
void softgpu_layout_node(void *to, const HsaNodeProperties *node,
                         const struct softgpu_newer_properties *newer);
void softgpu_layout_link(void *links, HSAuint32 number, const HsaIoLinkProperties *link);

#endif
