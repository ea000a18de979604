/* Reads files that hold several images: clang's offload bundles, NVIDIA's fatbins.
 *
 * If an entry cannot be read, the library does not cache the module. */
#include "modules/image/formats.h"

#include <string.h>

enum { ENTRIES = 1024, NAME_BYTES = 4096 }; /* a larger table is not read to its end */

/* The facts found so far about the entries of a file. */
struct contents {
    uint64_t end;  /* the end of the last entry, as an offset in the file */
    bool doubtful; /* an image cannot be read */
    bool writable; /* an image contains, or may contain, globals that a kernel can write */
    bool settable; /* an image contains constants that the host can set */
    bool opaque;   /* an image is compressed, or of a kind that this reader does not support */
};

static void add_elf(struct contents *contents, struct image *whole, struct view *entry) {
    struct image image = {.bytes = entry->bytes};
    image_describe_elf(&image, entry);
    contents->doubtful |= image.size == 0;
    contents->writable |= DOUBT(bundle_entry_is_writable, image.writable);
    contents->settable |= image.settable;
    if (image.machine)
        whole->machine = image.machine;
}

static void add_entry(struct contents *contents, struct image *whole, struct view *view,
                      uint64_t offset, uint64_t size) {
    if (DOUBT(bundle_entry_is_empty, size == 0))
        return;
    if (!view_holds(view, offset, size)) {
        contents->doubtful = true;
        return;
    }
    struct view entry = view_part(view, offset, size);
    if (offset + size > contents->end)
        contents->end = offset + size;
    if (image_is_elf(&entry))
        add_elf(contents, whole, &entry);
    else
        contents->writable = contents->opaque = true;
}

/* ---- clang's offload bundle ---- */

bool image_is_bundle(struct view *view) {
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    return view_holds(view, 0, BUNDLE_MAGIC) && memcmp(view->bytes, magic, BUNDLE_MAGIC) == 0;
}

static uint64_t count_of(const unsigned char *bundle) {
    uint64_t count;
    memcpy(&count, bundle + BUNDLE_MAGIC, sizeof count);
    return count;
}

static struct bundle_entry bundle_entry_at(const unsigned char *bundle, size_t at) {
    struct bundle_entry entry;
    memcpy(&entry, bundle + at, sizeof entry);
    return entry;
}

/* Returns false if the table cannot be read to its end. */
static bool read_bundle_table(struct contents *contents, struct image *image, struct view *view) {
    const uint64_t count = count_of(view->bytes);
    size_t at = BUNDLE_HEAD;
    for (uint64_t i = 0; i < count; i++) {
        if (i == ENTRIES || !view_holds(view, at, sizeof(struct bundle_entry)))
            return false;
        const struct bundle_entry entry = bundle_entry_at(view->bytes, at);
        at += sizeof entry;
        if (entry.name_size > NAME_BYTES || !view_holds(view, at, entry.name_size))
            return false;
        at += entry.name_size;
        add_entry(contents, image, view, entry.offset, entry.size);
    }
    if (at > contents->end)
        contents->end = at;
    return true;
}

void image_describe_bundle(struct image *image, struct view *view) {
    struct contents contents = {.end = BUNDLE_HEAD};
    if (!view_holds(view, 0, BUNDLE_HEAD) || !read_bundle_table(&contents, image, view) ||
        contents.doubtful || !view_holds(view, 0, contents.end))
        return;
    image->size = contents.end;
    image->head = BUNDLE_HEAD;
    image->sized_by_tables = true;
    image->writable = contents.writable;
    image->settable = contents.settable && !contents.writable;
    image->opaque = contents.opaque;
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
 * reader skips PTX and compressed entries. */
static void read_entries(struct contents *contents, struct image *image, struct view *view,
                         uint64_t at) {
    bool seen = false;
    struct fatbin_entry entry;
    while (view_holds(view, at, sizeof entry)) {
        memcpy(&entry, view->bytes + at, sizeof entry);
        const uint64_t from = at + entry.header_size;
        const bool is_readable =
            entry.header_size >= sizeof entry &&
            PROOF(fatbin_entry_is_readable, view_holds(view, from, entry.size));
        if (!is_readable) {
            contents->doubtful = true;
            break;
        }
        struct view part = view_part(view, from, entry.size);
        if (entry.kind == FATBIN_ELF && image_is_elf(&part)) {
            add_elf(contents, image, &part);
            seen = true;
        }
        at = from + entry.size;
    }
    contents->writable |= !seen;
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
    struct contents contents = {0};
    struct view whole = view_part(view, 0, size);
    read_entries(&contents, image, &whole, header.header_size);
    image->writable = contents.writable;
    image->settable = contents.settable && !contents.writable;
    if (contents.doubtful)
        return;
    image->size = size;
    image->head = sizeof header;
}
