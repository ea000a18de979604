/* Decodes and prints image instructions (MIMG), which are not emulated. */
#include "families.h"
#include "memory.h"

#define ROW(op_, name_, targets_, address_, move_)                                                 \
    INFO_ROW(op_, name_, targets_, NONE, address_, B256, move_ >= MV_IMAGE_SAMPLE ? B128 : NONE,   \
             move_)

static const struct row rows[] = {
#include "mimg.def"
};

const struct rows softgpu_rows_mimg = FAMILY(rows);
