/* Reads an image: selects the reader of its format, and computes the hash. Compares images. */
#include "modules/image/formats.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

/* ---- texts and bitcode ---- */

static bool is_of_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Returns true if `at` lies in an instruction. An instruction begins with a letter (ld.global.f32),
 * and a directive begins with a point. Directives may follow each other without a space
 * (.visible.global). */
static bool is_instructions(const char *text, const char *at) {
    enum { LONGEST = 256 }; /* no instruction is longer */
    const char *const begin = at - text > LONGEST ? at - LONGEST : text;
    while (at > begin && (is_of_word(at[-1]) || at[-1] == '.'))
        at--;
    return *at != '.' && (at == text || at > begin);
}

bool ptx_has(const char *text, const char *directive) {
    const size_t length = strlen(directive);
    for (const char *at = strstr(text, directive); at; at = strstr(at + length, directive))
        if (!is_of_word(at[length]) && !is_instructions(text, at))
            return true;
    return false;
}

static void describe_text(struct image *image, struct view *view) {
    const char *text = (const char *)image->bytes;
    const size_t length = view_text_length(view);
    if (length == SIZE_MAX || !strstr(text, ".version"))
        return;
    image->kind = IMAGE_PTX;
    image->machine = MACHINE_CUDA;
    image->size = length + 1;
    image->head = 1;
    image->sized_by_tables = true; /* a search through the text must find its end */
    image->writable = ptx_has(text, ".global") || ptx_has(text, ".const");
}

enum { TEXT = 8 }; /* this many bytes are enough to recognise a text; every image has more */

static bool is_text(struct view *view) {
    const unsigned char *bytes = view->bytes;
    for (size_t i = 0; i < TEXT && bytes[i]; i++)
        if (bytes[i] >= 127 || (bytes[i] < 32 && !memchr("\t\n\r", bytes[i], 3)))
            return false;
    return bytes[0] != '\0';
}

static bool is_bitcode(struct view *view) {
    return memcmp(view->bytes, "BC\xC0\xDE", 4) == 0;
}

/* ---- the hash ---- */

/* Adds 8 bytes to a hash, which only distributes images over buckets: a comparison of bytes decides
 * equality. */
static inline uint64_t mixed(uint64_t hash, const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Computes the hash as four independent sums, so that the processor can compute the four sums at
 * the same time. */
static uint64_t hash_of(const struct image *image) {
    uint64_t lanes[4] = {image->size * 0x9E3779B97F4A7C15u, 1, 2, 3}, hash = 0;
    size_t at = 0;
    for (; at + sizeof lanes <= image->size; at += sizeof lanes)
        for (size_t i = 0; i < 4; i++)
            lanes[i] = mixed(lanes[i], image->bytes + at + 8 * i);
    for (; at + 8 <= image->size; at += 8)
        lanes[0] = mixed(lanes[0], image->bytes + at);
    for (size_t i = 0; i < 4; i++)
        hash = mixed(hash, (const unsigned char *)&lanes[i]);
    return hash ? hash : 1;
}

/* ---- any image ---- */

static const struct format {
    enum image_kind kind;
    bool (*begins)(struct view *view);
    void (*describe)(struct image *image, struct view *view); /* NULL: left to HIP */
} formats[] = {
    {IMAGE_ELF, image_is_elf, image_describe_elf},
    {IMAGE_BUNDLE, image_is_bundle, image_describe_bundle},
    {IMAGE_FATBIN, image_is_fatbin, image_describe_fatbin},
    {IMAGE_SOURCE, is_bitcode, NULL},
    {IMAGE_SOURCE, is_text, describe_text},
};

struct image image_describe(const void *data) {
    struct image image = {.bytes = data, .kind = IMAGE_UNKNOWN};
    struct view view = {.bytes = data, .limit = SIZE_MAX};
    const bool is_readable = PROOF(first_bytes_are_readable, view_holds(&view, 0, TEXT));
    if (!is_readable)
        return image;
    const struct format *format = formats, *const end = formats + sizeof formats / sizeof *formats;
    while (format < end && !format->begins(&view))
        format++;
    if (format < end) {
        image.kind = format->kind;
        if (format->describe)
            format->describe(&image, &view);
    }
    if (image.size)
        image.hash = hash_of(&image);
    return image;
}

/* ---- whether an image lies at an address ----
 *
 * The bytes at `data` may be a shorter image. So if an image's head does not contain the image's
 * size, the function compares the image part by part. A part determines the size of the next part.
 * So the function reads the next part only if the parts before are equal. */

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
    if (image->kind == IMAGE_PTX) /* strcmp does not read beyond the end of the text */
        return strcmp((const char *)image->bytes, data) == 0;
    return (image->kind == IMAGE_BUNDLE ? bundle_table_lies_at(image, data)
                                        : elf_tables_lie_at(image, data)) &&
           memcmp(image->bytes, data, image->size) == 0;
}
