/* Declares the readers of each format: image_describe selects one of them. */
#ifndef MGPU_RT_FORMATS_H
#define MGPU_RT_FORMATS_H

#include "modules/image/image.h"

/* Memory that may be unmapped. Before a reader accesses bytes, the reader checks that the bytes are
 * readable.
 *
 * Mapped memory is not always readable: a page may lack read permission, or lie beyond the end of
 * its file. */
struct view {
    const unsigned char *bytes;
    size_t limit; /* nothing beyond this limit is read; SIZE_MAX: no limit is known */
    size_t known; /* this many bytes from the start are readable */
};

/* Returns true if `size` bytes at `offset`, and all bytes before them, are readable. Bytes behind
 * an unreadable gap do not belong to the image. The first check of a page costs one system call, 50
 * ns. */
bool view_holds(struct view *view, uint64_t offset, uint64_t size);

/* Returns a part of a readable view as a view that needs no further checks. */
static inline struct view view_part(const struct view *view, uint64_t offset, uint64_t size) {
    return (struct view){view->bytes + offset, size, size};
}

/* Returns the length of the text at the start of a view, without the final 0; SIZE_MAX if the
 * readable bytes end before the 0. */
size_t view_text_length(struct view *view);

/* Returns true if the view begins with the magic bytes of the format. */
bool image_is_elf(struct view *view);
bool image_is_bundle(struct view *view);
bool image_is_fatbin(struct view *view);

/* Reads an image of this format, as image_describe does. The caller has set image->bytes. */
void image_describe_elf(struct image *image, struct view *view);
void image_describe_bundle(struct image *image, struct view *view);
void image_describe_fatbin(struct image *image, struct view *view);

/* Returns true if the text declares, or may declare, variables with this directive. Kernels can
 * write to ".global" variables; the other directive is ".const". */
bool ptx_has(const char *text, const char *directive);

/* A bundle's head is its magic and the number of its entries. The name of an entry follows directly
 * after the entry. */
enum { BUNDLE_MAGIC = 24, BUNDLE_HEAD = BUNDLE_MAGIC + sizeof(uint64_t) };

struct bundle_entry {
    uint64_t offset, size, name_size;
};

#endif
