/* Fuzzes the functions that read and rewrite code object metadata. The buffer for rewritten
 * metadata has the image's size. */
#include "modules/image/metadata.h"
#include "edge.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static void use(const unsigned char *bytes, size_t size) {
    const struct image image = {
        .bytes = bytes, .size = size, .kind = IMAGE_ELF, .machine = EM_AMDGPU};
    const char *chip;
    size_t length;
    (void)metadata_block_limit(&image, "test_func");
    if (metadata_chip(&image, &chip, &length))
        HOLDS(chip >= (const char *)bytes && length <= size);
    unsigned char *copy = malloc(size);
    HOLDS(copy);
    memcpy(copy, bytes, size);
    metadata_drop_queue(copy, size);
    free(copy);
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
