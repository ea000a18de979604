/* Fuzzes the list of kernel names. The fuzzer passes arbitrary bytes as an image, and a buffer of
 * arbitrary size. */
#include "edge.h"
#include "modules/image/image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    static const uint16_t machines[] = {MACHINE_AMDGPU, MACHINE_CUDA};
    const bool text = data[0] & 1;
    const size_t room = 1 + data[1] * 4, length = size - 2;
    unsigned char *bytes = malloc(length);
    char *names = malloc(room);
    HOLDS(bytes && names);
    memcpy(bytes, data + 2, length);
    if (text)
        bytes[length - 1] = '\0';
    const struct image image = {.bytes = bytes,
                                .size = length,
                                .kind = text ? IMAGE_PTX : IMAGE_ELF,
                                .machine = machines[data[0] >> 1 & 1]};
    HOLDS(strlen(image_kernel_names(&image, names, room)) < room);
    free(names);
    free(bytes);
    return 0;
}
