/* Finds the names of an image's kernels, for messages. The search scans the image's bytes for
 * names, without a reader for each format. */
#include "modules/image/image.h"
#include "modules/image/ptx.h"
#include "process/lines.h"

#include <stdio.h>
#include <string.h>

/* Writes a list of names for a message, in quotes and separated by ", ". A list that is too long is
 * cut off. */
enum { LONGEST_NAME = 256 };
struct name_list {
    char *text;
    size_t size;
};

/* Adds a name unless the list already contains it. Returns false if the list is full. */
static bool name_list_add(struct name_list *list, const char *name, int length) {
    char quoted[LONGEST_NAME];
    snprintf(quoted, sizeof quoted, "'%.*s'", length, name);
    if (length == 0 || strstr(list->text, quoted))
        return true; /* the list already contains the name, because two sections of an ELF may
                      * contain it */
    return text_append(list->text, list->size, "%s%s", list->text[0] ? ", " : "", quoted);
}

static bool is_printable(unsigned char byte) {
    return byte > 32 && byte < 127;
}

/* AMD's code objects have a symbol <name>.kd for each kernel. */
static void list_code_object(const struct image *image, struct name_list *list) {
    for (size_t i = 3; i < image->size; i++) {
        if (memcmp(image->bytes + i - 3, ".kd", 4) != 0)
            continue;
        size_t begin = i - 3;
        while (begin > 0 && i - begin < LONGEST_NAME && is_printable(image->bytes[begin - 1]))
            begin--;
        if (!name_list_add(list, (const char *)image->bytes + begin, (int)(i - 3 - begin)))
            return;
    }
}

/* A cubin has a section .text.<name> for each kernel. */
static void list_cubin(const struct image *image, struct name_list *list) {
    static const char prefix[] = ".text.";
    const size_t length = sizeof prefix - 1;
    for (size_t i = 1; i + length < image->size; i++) {
        if (image->bytes[i - 1] != '\0' || memcmp(image->bytes + i, prefix, length) != 0)
            continue;
        size_t end = i + length;
        while (end < image->size && is_printable(image->bytes[end]))
            end++;
        if (!name_list_add(list, (const char *)image->bytes + i + length, (int)(end - i - length)))
            return;
    }
}

static void list_ptx(const struct image *image, struct name_list *list) {
    const char *position = (const char *)image->bytes, *name;
    int length;
    while ((name = ptx_next_kernel(&position, &length)))
        if (!name_list_add(list, name, length))
            return;
}

char *image_kernel_names(const struct image *image, char *text, size_t size) {
    struct name_list list = {text, size};
    text[0] = '\0';
    if (image->kind == IMAGE_PTX)
        list_ptx(image, &list);
    else if (image->machine == MACHINE_CUDA)
        list_cubin(image, &list);
    else
        list_code_object(image, &list);
    return text;
}
