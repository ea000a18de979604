/* The layouts in which ROCr's releases expect the driver's facts about a node.
 *
 * The driver's files fill in the structures of Debian 12's <hsakmt.h> (ROCr 5.2.3). Debian 13's
 * ROCr (6.1.2) has this layout, with names for bytes that were reserved. ROCr 7.2.4 has additional
 * words in between; it is the only release that asks through DTIF. All members that moved are
 * here. */
#ifndef SOFTGPU_LAYOUT_H
#define SOFTGPU_LAYOUT_H

#include "thunk.h"

enum softgpu_layout { SOFTGPU_LAYOUT_5, SOFTGPU_LAYOUT_7 };

/* Sets the release that asks, before the first question: DtifCreate calls it. Until then the layout
 * is that of 5. */
void softgpu_layout_set(enum softgpu_layout layout);

/* The fields that have a name since ROCr 6.1. */
struct softgpu_newer_properties {
    HSAuint32 xcc_count, kfd_gpu_id, family;
};

/* Writes the layout that the caller's release reads. */
void softgpu_layout_node(void *to, const HsaNodeProperties *node,
                         const struct softgpu_newer_properties *newer);
void softgpu_layout_link(void *links, HSAuint32 number, const HsaIoLinkProperties *link);

#endif
