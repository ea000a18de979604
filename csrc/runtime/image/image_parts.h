/* The readers of each kind of image, between themselves: see image_describe. */
#ifndef MGPU_RT_IMAGE_PARTS_H
#define MGPU_RT_IMAGE_PARTS_H

#include "image/image.h"
#include "image/view.h"

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224 };

void image_describe_elf(struct image *image, struct view *view);
void image_describe_bundle(struct image *image, struct view *view);
void image_describe_compressed(struct image *image, struct view *view);
void image_describe_fatbin(struct image *image, struct view *view);

/* True if a view begins as these do. */
bool image_is_elf(struct view *view);
bool image_is_bundle(struct view *view);
bool image_is_fatbin(struct view *view);

/* True if the headers that tell an image's size lie at `data` too. Each is compared only after
 * what tells that it can be read. */
bool image_elf_tables_lie_at(const struct image *image, const unsigned char *data);
bool image_bundle_table_lies_at(const struct image *image, const unsigned char *data);

#endif
