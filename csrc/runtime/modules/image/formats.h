/* The readers of each format, between themselves: image_describe chooses one. */
#ifndef MGPU_RT_FORMATS_H
#define MGPU_RT_FORMATS_H

#include "modules/image/image.h"
#include "modules/image/view.h"

/* True if a view begins as the format does. */
bool image_is_elf(struct view *view);
bool image_is_compressed(struct view *view);
bool image_is_bundle(struct view *view);
bool image_is_fatbin(struct view *view);

/* Read an image that begins so, as image_describe does. `image` has its bytes. */
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

/* Adds a name, unless the list has it. False if the list is full. */
bool name_list_add(struct name_list *list, const char *name, int length);

#endif
