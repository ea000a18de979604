/* The metadata of code objects: rewritten in room of just the image's size. */
#include "../../csrc/runtime/metadata.h"
#include "edge.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* HIP reads the result as it reads any image, so it is still one of that size. */
static void rewrite(const unsigned char *bytes, size_t size) {
    const struct image image = {
        .bytes = bytes, .size = size, .kind = IMAGE_ELF, .machine = EM_AMDGPU};
    unsigned char *copy = malloc(size);
    HOLDS(copy);
    memcpy(copy, bytes, size);
    metadata_drop_queue(copy, size);
    if (!metadata_wants_queue(&image))
        HOLDS(memcmp(copy, bytes, size < EI_NIDENT ? size : EI_NIDENT) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *bytes = malloc(size + 1); /* malloc(0) may give NULL */
    HOLDS(bytes);
    if (size)
        memcpy(bytes, data, size);
    rewrite(bytes, size + 1);
    free(bytes);
    return 0;
}
