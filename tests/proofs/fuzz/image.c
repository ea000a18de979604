/* Fuzzes the readers of images. The fuzzer reads all bytes that the readers declare readable, and
 * compares the bytes with a copy. */
#include "modules/image/image.h"
#include "edge.h"

#include <stdlib.h>
#include <string.h>

/* Calls the functions that the library calls on an image whose size is known. */
static void use(const struct image *image) {
    unsigned char *copy = malloc(image->size);
    HOLDS(copy);
    memcpy(copy, image->bytes, image->size);
    struct image kept = *image;
    kept.bytes = copy;
    HOLDS(image_lies_at(&kept, image->bytes));
    copy[image->size / 2] ^= 1;
    HOLDS(!image_lies_at(image, copy) || image->kind == IMAGE_PTX);
    copy[image->size / 2] ^= 1;
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const unsigned char *bytes = edge_copy(data, &size);
    const struct image image = image_describe(bytes);
    HOLDS(image.size <= size);
    if (image.size)
        use(&image);
    return 0;
}
