#include "images.h"
#include "../device.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_IMAGES = 256 };

struct image {
    char *bytes;
    uint64_t size;
    bool written;
};

static struct {
    pthread_mutex_t lock;
    struct image images[MOST_IMAGES];
    unsigned count;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the size of an ELF file. Linkers write the section table last, so the file ends where
 * this table ends. */
static uint64_t size_of(const void *image) {
    Elf64_Ehdr header;
    if (memcmp(image, ELFMAG, SELFMAG) != 0)
        return 0;
    memcpy(&header, image, sizeof header);
    return header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
}

/* Returns the number of the copy of an image, which it makes if there is none, or MOST_IMAGES. */
static unsigned keep(const void *image, uint64_t size) {
    unsigned n = 0;
    while (n < known.count &&
           (known.images[n].size != size || memcmp(known.images[n].bytes, image, size) != 0))
        n++;
    if (n < known.count || n == MOST_IMAGES)
        return n;
    char *copy = malloc(size);
    if (!copy)
        return MOST_IMAGES;
    known.images[known.count++] = (struct image){.bytes = memcpy(copy, image, size), .size = size};
    return n;
}

static bool is_code_object(const struct softgpu_range *range) {
    return range->size >= sizeof(Elf64_Ehdr) && memcmp(range->host, ELFMAG, SELFMAG) == 0;
}

/* Returns whether a range is a loaded code object that contains the code of an image. */
static bool is_loaded_from(const struct softgpu_range *range, const void *of) {
    const struct image *image = of;
    Elf64_Ehdr header;
    if (!is_code_object(range))
        return false;
    memcpy(&header, image->bytes, sizeof header);
    for (unsigned n = 0; n < header.e_phnum; n++) {
        Elf64_Phdr segment;
        uint64_t at = header.e_phoff + n * sizeof segment;
        if (at > image->size || image->size - at < sizeof segment)
            return false;
        memcpy(&segment, image->bytes + at, sizeof segment);
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
            continue;
        return segment.p_offset + segment.p_filesz <= image->size &&
               segment.p_vaddr + segment.p_filesz <= range->size &&
               memcmp(range->host + segment.p_vaddr, image->bytes + segment.p_offset,
                      segment.p_filesz) == 0;
    }
    return false;
}

void softgpu_image_add(const void *image) {
    uint64_t size = image ? size_of(image) : 0;
    if (!size)
        return;
    pthread_mutex_lock(&known.lock);
    unsigned n = keep(image, size);
    if (n < MOST_IMAGES) /* the line tables of two images with the same code may differ */
        softgpu_name_ranges(n + 1, is_loaded_from, &known.images[n]);
    pthread_mutex_unlock(&known.lock);
}

static void write_file(struct image *image, unsigned number) {
    const char *reports = secure_getenv("MGPU_RT_CHECK");
    char path[4096];
    if (image->written || !reports || !*reports)
        return;
    image->written = true;
    snprintf(path, sizeof path, "%s.%u", reports, number);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    if (write(file, image->bytes, image->size) < 0)
        unlink(path);
    close(file);
}

bool softgpu_image_find(uint64_t va, unsigned *number, uint64_t *offset) {
    struct softgpu_range range;
    if (!softgpu_find_range(va, &range))
        return false;
    pthread_mutex_lock(&known.lock);
    for (unsigned n = 0; n < known.count && !range.image; n++)
        if (is_loaded_from(&range, &known.images[n])) /* HIP loaded the image later than usual */
            range.image = n + 1;
    if (range.image)
        write_file(&known.images[range.image - 1], *number = range.image - 1);
    pthread_mutex_unlock(&known.lock);
    *offset = va - range.va;
    return range.image != 0;
}
