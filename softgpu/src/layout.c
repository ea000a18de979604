#include "layout.h"

#include <string.h>

/* In ROCr 7.2.4, a structure has the bytes of the older version, and a zero word before some
 * members. */
struct gap {
    size_t before; /* offset in the older structure */
};

static const struct gap node_gaps[] = {
    {offsetof(HsaNodeProperties, NumMemoryBanks)},  /* NumNeuralCores */
    {offsetof(HsaNodeProperties, MaxWavesPerSIMD)}, /* Capability2 */
    {offsetof(HsaNodeProperties, VendorId)},        /* OverrideEngineId */
};
static const struct gap link_gaps[] = {
    {offsetof(HsaIoLinkProperties, Flags)}, /* RecSdmaEngIdMask */
};

enum { WORD = 4, GAPS_OF_LINK = sizeof link_gaps / sizeof *link_gaps };

/* HsaNodeProperties has this size in ROCr 5.2.3 to 6.4. Since ROCr 6.1, some reserved bytes at the
 * end of the structure have names. */
_Static_assert(sizeof(HsaNodeProperties) == 356, "hsakmt.h is of ROCm 5 or 6");

static enum softgpu_layout current = SOFTGPU_LAYOUT_5;

void softgpu_layout_set(enum softgpu_layout layout) {
    current = layout;
}

static void spread(char *to, const char *from, size_t size, const struct gap *gaps, size_t count) {
    size_t done = 0;
    for (size_t n = 0; n < count; n++) {
        memcpy(to + done + n * WORD, from + done, gaps[n].before - done);
        done = gaps[n].before;
        memset(to + done + n * WORD, 0, WORD);
    }
    memcpy(to + done + count * WORD, from + done, size - done);
}

void softgpu_layout_node(void *to, const HsaNodeProperties *node,
                         const struct softgpu_newer_properties *newer) {
    HsaNodeProperties whole = *node;
    size_t gaps = current == SOFTGPU_LAYOUT_7 ? sizeof node_gaps / sizeof *node_gaps : 0;
    memcpy((char *)(&whole + 1) - sizeof *newer, newer, sizeof *newer);
    spread(to, (const char *)&whole, sizeof whole, node_gaps, gaps);
}

void softgpu_layout_link(void *links, HSAuint32 number, const HsaIoLinkProperties *link) {
    size_t gaps = current == SOFTGPU_LAYOUT_7 ? GAPS_OF_LINK : 0;
    spread((char *)links + number * (sizeof *link + gaps * WORD), (const char *)link, sizeof *link,
           link_gaps, gaps);
}
