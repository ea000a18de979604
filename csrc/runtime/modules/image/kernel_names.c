/* Names for messages: of an image's kernels, and of functions that a code object does not define.
 * Kernels are found in the image's text, without a reader of each format. */
#include "modules/image/image.h"
#include "modules/image/ptx.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

struct list {
    char *text;
    size_t size, used;
};

/* A name that is longer is cut off. */
enum { LONGEST = 256 };

/* False if the list is full. */
static bool add_name(struct list *list, const char *name, int length) {
    char quoted[LONGEST];
    snprintf(quoted, sizeof quoted, "'%.*s'", length, name);
    if (length == 0 || strstr(list->text, quoted))
        return true; /* two sections of an ELF may hold it */
    const int added = snprintf(list->text + list->used, list->size - list->used, "%s%s",
                               list->used ? ", " : "", quoted);
    if (added < 0 || (size_t)added >= list->size - list->used) {
        list->text[list->used] = '\0';
        return false;
    }
    list->used += (size_t)added;
    return true;
}

static bool is_printable(unsigned char byte) {
    return byte > 32 && byte < 127;
}

/* A code object of AMD's has a symbol <name>.kd for each kernel. */
static void list_code_object(const struct image *image, struct list *list) {
    for (size_t i = 3; i < image->size; i++) {
        if (memcmp(image->bytes + i - 3, ".kd", 4) != 0)
            continue;
        size_t begin = i - 3;
        while (begin > 0 && i - begin < LONGEST && is_printable(image->bytes[begin - 1]))
            begin--;
        if (!add_name(list, (const char *)image->bytes + begin, (int)(i - 3 - begin)))
            return;
    }
}

/* A cubin has a section .text.<name> for each kernel. */
static void list_cubin(const struct image *image, struct list *list) {
    static const char prefix[] = ".text.";
    const size_t length = sizeof prefix - 1;
    for (size_t i = 1; i + length < image->size; i++) {
        if (image->bytes[i - 1] != '\0' || memcmp(image->bytes + i, prefix, length) != 0)
            continue;
        size_t end = i + length;
        while (end < image->size && is_printable(image->bytes[end]))
            end++;
        if (!add_name(list, (const char *)image->bytes + i + length, (int)(end - i - length)))
            return;
    }
}

static void list_ptx(const struct image *image, struct list *list) {
    const char *position = (const char *)image->bytes, *name;
    int length;
    while ((name = ptx_next_kernel(&position, &length)))
        if (!add_name(list, name, length))
            return;
}

char *image_kernel_names(const struct image *image, char *text, size_t size) {
    struct list list = {text, size, 0};
    text[0] = '\0';
    if (image->kind == IMAGE_PTX)
        list_ptx(image, &list);
    else if (image->machine == MACHINE_CUDA)
        list_cubin(image, &list);
    else
        list_code_object(image, &list);
    return text;
}

/* ---- functions that a code object does not define ---- */

/* Copies `size` bytes at an offset; false if they are not all within the image. */
static bool image_bytes_at(const struct image *image, uint64_t offset, void *to, size_t size) {
    if (offset > image->size || size > image->size - offset)
        return false;
    memcpy(to, image->bytes + offset, size);
    return true;
}

/* The text at an offset of a string table; NULL if it does not end within the image. */
static const char *string_at(const struct image *image, const Elf64_Shdr *strings, uint64_t name) {
    uint64_t at;
    if (__builtin_add_overflow(strings->sh_offset, name, &at) || at >= image->size)
        return NULL;
    const char *text = (const char *)image->bytes + at;
    return memchr(text, '\0', image->size - at) ? text : NULL;
}

static void list_undefined(const struct image *image, const Elf64_Shdr *symbols,
                           const Elf64_Shdr *strings, struct list *list) {
    Elf64_Sym symbol;
    for (uint64_t at = sizeof symbol; at + sizeof symbol <= symbols->sh_size; at += sizeof symbol) {
        if (!image_bytes_at(image, symbols->sh_offset + at, &symbol, sizeof symbol))
            return;
        const char *name = string_at(image, strings, symbol.st_name);
        if (name && symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
            !add_name(list, name, (int)strnlen(name, LONGEST)))
            return;
    }
}

char *image_undefined_names(const struct image *image, char *text, size_t size) {
    struct list list = {text, size, 0};
    Elf64_Ehdr header;
    Elf64_Shdr symbols, strings;
    text[0] = '\0';
    if (image->kind != IMAGE_ELF || !image_bytes_at(image, 0, &header, sizeof header))
        return text;
    for (unsigned i = 1; i < header.e_shnum; i++) {
        if (!image_bytes_at(image, header.e_shoff + i * sizeof symbols, &symbols, sizeof symbols))
            break;
        if (symbols.sh_type != SHT_DYNSYM)
            continue;
        if (image_bytes_at(image, header.e_shoff + symbols.sh_link * sizeof strings, &strings,
                           sizeof strings))
            list_undefined(image, &symbols, &strings, &list);
        break; /* a file has one */
    }
    return text;
}
