/* Fuzzes the functions that read code object metadata. */
#include "modules/image/metadata.h"
#include "edge.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static void use(const unsigned char *bytes, size_t size) {
    const struct image image = {
        .bytes = bytes, .size = size, .kind = IMAGE_ELF, .machine = EM_AMDGPU};
    char targets[16];
    struct rest rest = metadata_in(&image);
    struct metadata_kernel kernel;
    while (metadata_next_kernel(&rest, &kernel))
        HOLDS(kernel.name >= (const char *)bytes &&
              kernel.name + kernel.length + strlen(".kd") <= (const char *)bytes + size);
    metadata_targets(&image, targets, sizeof targets);
    HOLDS(strlen(targets) < sizeof targets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *bytes = calloc(1, size + 1);
    HOLDS(bytes);
    if (size)
        memcpy(bytes, data, size);
    use(bytes, size + 1);
    free(bytes);
    return 0;
}
