/* Reads files that hold several images: clang's offload bundles, NVIDIA's fatbins.
 *
 * If an entry cannot be read, the library does not cache the module. */
#include "modules/image/formats.h"

#include <string.h>

enum { ENTRIES = 1024, NAME_BYTES = 4096 }; /* a larger table is not read to its end */

/* Adds the facts about an entry to those about the whole file. Returns false if the entry cannot be
 * read. */
static bool add_elf(struct image *whole, struct view *entry) {
    struct image image = {.bytes = entry->bytes};
    image_describe_elf(&image, entry);
    whole->writable |= DOUBT(bundle_entry_is_writable, image.writable);
    if (image.machine)
        whole->machine = image.machine;
    return image.size != 0;
}

static bool add_entry(struct image *whole, struct view *entry) {
    if (image_is_elf(entry))
        return add_elf(whole, entry);
    whole->writable = whole->opaque = true;
    return true;
}

/* ---- clang's offload bundle ---- */

bool image_is_bundle(struct view *view) {
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    return view_holds(view, 0, BUNDLE_MAGIC) && memcmp(view->bytes, magic, BUNDLE_MAGIC) == 0;
}

/* Returns the end of the last entry, or of the table; 0 if the table or an entry cannot be read. */
static uint64_t read_bundle_table(struct image *image, struct view *view) {
    uint64_t at = BUNDLE_HEAD, end = BUNDLE_HEAD, count;
    memcpy(&count, view->bytes + BUNDLE_MAGIC, sizeof count);
    for (uint64_t i = 0; i < count; i++) {
        if (i == ENTRIES || !view_holds(view, at, sizeof(struct bundle_entry)))
            return 0;
        struct bundle_entry entry;
        memcpy(&entry, view->bytes + at, sizeof entry);
        at += sizeof entry;
        if (entry.name_size > NAME_BYTES || !view_holds(view, at, entry.name_size))
            return 0;
        at += entry.name_size;
        if (DOUBT(bundle_entry_is_empty, entry.size == 0))
            continue;
        if (!view_holds(view, entry.offset, entry.size))
            return 0;
        struct view part = view_part(view, entry.offset, entry.size);
        if (!add_entry(image, &part))
            return 0;
        if (entry.offset + entry.size > end)
            end = entry.offset + entry.size;
    }
    return at > end ? at : end;
}

void image_describe_bundle(struct image *image, struct view *view) {
    const uint64_t end = view_holds(view, 0, BUNDLE_HEAD) ? read_bundle_table(image, view) : 0;
    if (!end || !view_holds(view, 0, end))
        return;
    image->size = end;
    image->head = BUNDLE_HEAD;
    image->sized_by_tables = true;
}

/* ---- NVIDIA's fatbin ---- */

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* the bytes after this header */
};
struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t packed_size, unused;
};
enum { FATBIN_ELF = 2 };

bool image_is_fatbin(struct view *view) {
    static const unsigned char magic[] = {0x50, 0xED, 0x55, 0xBA};
    return view_holds(view, 0, sizeof(struct fatbin_header)) &&
           memcmp(view->bytes, magic, sizeof magic) == 0;
}

/* All entries come from one source, so the readable cubins show whether the source has globals. The
 * reader skips PTX and compressed entries. Returns false if an entry cannot be read. */
static bool read_entries(struct image *image, struct view *view, uint64_t at) {
    bool seen = false;
    struct fatbin_entry entry;
    while (view_holds(view, at, sizeof entry)) {
        memcpy(&entry, view->bytes + at, sizeof entry);
        const uint64_t from = at + entry.header_size;
        const bool is_readable =
            entry.header_size >= sizeof entry &&
            PROOF(fatbin_entry_is_readable, view_holds(view, from, entry.size));
        if (!is_readable)
            return false;
        struct view part = view_part(view, from, entry.size);
        if (entry.kind == FATBIN_ELF && image_is_elf(&part)) {
            if (!add_elf(image, &part))
                return false;
            seen = true;
        }
        at = from + entry.size;
    }
    image->writable |= !seen;
    return true;
}

void image_describe_fatbin(struct image *image, struct view *view) {
    struct fatbin_header header;
    uint64_t size;
    image->machine = MACHINE_CUDA;
    image->opaque = true; /* PTX and the cubins in a fatbin are usually compressed */
    memcpy(&header, view->bytes, sizeof header);
    if (__builtin_add_overflow(header.size, header.header_size, &size) ||
        header.header_size < sizeof header || !view_holds(view, 0, size))
        return;
    struct view whole = view_part(view, 0, size);
    if (!read_entries(image, &whole, header.header_size))
        return;
    image->size = size;
    image->head = sizeof header;
}
