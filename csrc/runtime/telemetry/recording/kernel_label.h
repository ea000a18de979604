/* Prepares the names of kernels for output. MLIR's --gpu-kernel-outlining gives one name to kernels
 * of several modules; a prefix then distinguishes them: "main_kernel_0::main_kernel". */
#ifndef MGPU_RT_KERNEL_LABEL_H
#define MGPU_RT_KERNEL_LABEL_H

#include "telemetry/counters.h"

#include <stdint.h>

/* The prefix that distinguishes a kernel from other kernels of the same name: no prefix, the
 * gpu.module's name, or a part of the image's hash. */
enum apart { APART_BY_NAME, APART_BY_MODULE, APART_BY_IMAGE };

struct kernel_labels {
    const struct kernel_name *names; /* an array of KERNELS names, which must outlive this struct */
    uint8_t apart[KERNELS];          /* enum apart */
};
void kernel_labels(struct kernel_labels *labels, const struct kernel_name names[KERNELS]);

/* Returns a kernel's name for output: the plain name itself, or the name with a prefix in `text`.
 * If the gpu.module's name is unknown or does not distinguish two images, the prefix is the first 8
 * digits of the image's hash. */
struct kernel_text {
    char text[sizeof(struct kernel_name)];
};
const char *kernel_label(const struct kernel_labels *labels, size_t row, struct kernel_text *text);

#endif
