/* The bits of an image instruction. */
#ifndef SOFTGPU_ISA_MIMG_H
#define SOFTGPU_ISA_MIMG_H

#include <stdint.h>

enum {
    MIMG_UNORM = 1 << 12,
    MIMG_GLC = 1 << 13,
    MIMG_DA = 1 << 14,
    MIMG_A16 = 1 << 15,
    MIMG_TFE = 1 << 16, /* on gfx90a: the data registers are accumulation registers */
    MIMG_LWE = 1 << 17,
    MIMG_SLC = 1 << 25,
};
#define MIMG_D16 (UINT32_C(1) << 31) /* a bit of the second word */

#endif
