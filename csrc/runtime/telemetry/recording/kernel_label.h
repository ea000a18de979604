/* The names of kernels as they are shown. MLIR's --gpu-kernel-outlining gives kernels of several
 * modules one name; a prefix then tells them apart: "main_kernel_0::main_kernel". */
#ifndef MGPU_RT_KERNEL_LABEL_H
#define MGPU_RT_KERNEL_LABEL_H

#include "telemetry/counters.h"

#include <stdint.h>

/* The label that tells a kernel from others of its name. */
enum apart { APART_BY_NAME, APART_BY_MODULE, APART_BY_IMAGE };

struct kernel_labels {
    const struct kernel_name *names; /* KERNELS names, which outlive this struct */
    uint8_t apart[KERNELS];          /* enum apart */
};
void kernel_labels(struct kernel_labels *labels, const struct kernel_name names[KERNELS]);

/* Returns a kernel's name as it is shown; in `text`, unless it is the plain one. An image without a
 * module's name, or with another image's, is named by the first 8 digits of its hash. */
struct kernel_text {
    char text[sizeof(struct kernel_name)];
};
const char *kernel_label(const struct kernel_labels *labels, size_t row, struct kernel_text *text);

#endif
