/* Compares images whose head does not tell their size: part by part, as the bytes there may be of a
 * shorter one. Only if a part is equal can as much be read as that part says. */
#include "modules/image/formats.h"

#include <elf.h>
#include <string.h>

static bool part_lies_at(const struct image *image, const unsigned char *data, uint64_t offset,
                         uint64_t size) {
    return memcmp(image->bytes + offset, data + offset, size) == 0;
}

static bool elf_tables_lie_at(const struct image *image, const unsigned char *data) {
    Elf64_Ehdr header;
    memcpy(&header, image->bytes, sizeof header);
    return part_lies_at(image, data, 0, sizeof header) &&
           part_lies_at(image, data, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)) &&
           part_lies_at(image, data, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
}

static bool bundle_table_lies_at(const struct image *image, const unsigned char *data) {
    struct bundle_entry entry;
    uint64_t count;
    size_t at = BUNDLE_HEAD;
    if (!part_lies_at(image, data, 0, BUNDLE_HEAD))
        return false;
    memcpy(&count, image->bytes + BUNDLE_MAGIC, sizeof count);
    for (; count > 0; count--) {
        if (!part_lies_at(image, data, at, sizeof entry))
            return false;
        memcpy(&entry, image->bytes + at, sizeof entry);
        at += sizeof entry + entry.name_size;
    }
    return true;
}

bool image_lies_at_by_parts(const struct image *image, const void *data) {
    if (image->kind == IMAGE_PTX) /* its end is its only part */
        return strcmp((const char *)image->bytes, data) == 0;
    return (image->kind == IMAGE_BUNDLE ? bundle_table_lies_at(image, data)
                                        : elf_tables_lie_at(image, data)) &&
           memcmp(image->bytes, data, image->size) == 0;
}
