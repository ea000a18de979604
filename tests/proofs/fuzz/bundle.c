/* Fuzzes, with arbitrary bytes, each reader of files that contain several images. */
#include "edge.h"
#include "modules/image/formats.h"
#include "modules/image/metadata.h"

#include <string.h>

static void (*const readers[])(struct image *, struct view *) = {
    image_describe_bundle, image_describe_fatbin, image_describe_elf};
enum { READERS = sizeof readers / sizeof *readers, FATBIN_HEADER = 16 };

static void read_with(unsigned number, const unsigned char *bytes, size_t limit) {
    struct image image = {.bytes = bytes};
    char targets[40];
    struct view view = {.bytes = bytes, .limit = limit};
    if (readers[number] == image_describe_fatbin && !view_holds(&view, 0, FATBIN_HEADER))
        return; /* the library calls this reader only if image_is_fatbin returns true */
    readers[number](&image, &view);
    HOLDS(image.size <= limit);
    HOLDS(image.head <= image.size);
    if (!image.size)
        return;
    metadata_targets(&image, targets, sizeof targets);
    HOLDS(strlen(targets) < sizeof targets);
}

/* The first byte of the input selects the reader, and decides whether the reader receives the
 * file's size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const unsigned choice = data[0];
    size--;
    const unsigned char *bytes = edge_copy(data + 1, &size);
    read_with(choice % READERS, bytes, choice & 128 ? size : SIZE_MAX);
    return 0;
}
