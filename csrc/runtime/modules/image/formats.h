/* The readers of each format, between themselves: image_describe chooses one. */
#ifndef MGPU_RT_FORMATS_H
#define MGPU_RT_FORMATS_H

#include "modules/image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that may not be there: a reader of an image asks first whether its bytes can be read.
 *
 * Mapped memory is not always readable: a page may have no rights, or lie behind the end of its
 * file. */
struct view {
    const unsigned char *bytes;
    size_t limit; /* nothing behind the limit is looked at; SIZE_MAX: only reading can tell */
    size_t known; /* so many bytes from the start can be read */
};

/* Returns true if `size` bytes at `offset` can be read, and all before them. The bytes behind a gap
 * do not belong to that file. A page that is not known yet costs one system call, 50 ns. */
bool view_holds(struct view *view, uint64_t offset, uint64_t size);

/* Returns a part of a readable view as a view of its own, which needs no more checks. */
static inline struct view view_part(const struct view *view, uint64_t offset, uint64_t size) {
    return (struct view){view->bytes + offset, size, size};
}

/* Returns the length of the text that begins a view, without its 0; SIZE_MAX if reading ends before
 * it. */
size_t view_text_length(struct view *view);

/* Returns true if a view begins as an image of the format does. */
bool image_is_elf(struct view *view);
bool image_is_compressed(struct view *view);
bool image_is_bundle(struct view *view);
bool image_is_fatbin(struct view *view);

/* Reads an image of this format, as image_describe does. `image` already has its bytes. */
void image_describe_elf(struct image *image, struct view *view);
void image_describe_compressed(struct image *image, struct view *view);
void image_describe_bundle(struct image *image, struct view *view);
void image_describe_fatbin(struct image *image, struct view *view);

/* A bundle's head is its magic and the number of its entries. Each entry's name follows it. */
enum { BUNDLE_MAGIC = 24, BUNDLE_HEAD = BUNDLE_MAGIC + sizeof(uint64_t) };

struct bundle_entry {
    uint64_t offset, size, name_size;
};

/* Names for a message, in quotes and separated by ", ". A longer one is cut off. */
enum { LONGEST_NAME = 256 };
struct name_list {
    char *text;
    size_t size, used;
};

/* Adds a name, unless the list has it. Returns false if the list is full. */
bool name_list_add(struct name_list *list, const char *name, int length);

#endif
