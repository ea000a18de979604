/* Finds a kernel's name for messages, from the address of the kernel's descriptor.
 *
 * ROCr loads a code object as one block, which begins with the ELF header and contains the dynamic
 * symbols. The symbol "name.kd" has the address of the kernel's descriptor. */
#include "device.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

struct image {
    const char *bytes;
    uint64_t size;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t size) {
    return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

static uint64_t dynamic_value(const struct image *image, int64_t tag) {
    const Elf64_Ehdr *header = at(image, 0, sizeof *header);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *segment =
            at(image, header->e_phoff + i * sizeof *segment, sizeof *segment);
        if (!segment || segment->p_type != PT_DYNAMIC)
            continue;
        for (uint64_t offset = segment->p_vaddr;; offset += sizeof(Elf64_Dyn)) {
            const Elf64_Dyn *entry = at(image, offset, sizeof *entry);
            if (!entry || entry->d_tag == DT_NULL)
                return 0;
            if (entry->d_tag == tag)
                return entry->d_un.d_val;
        }
    }
    return 0;
}

/* Returns the string at an offset in the image, or NULL if the string does not end within the
 * image. */
static const char *string_at(const struct image *image, uint64_t offset) {
    if (offset >= image->size)
        return NULL;
    const char *text = image->bytes + offset;
    return memchr(text, 0, image->size - offset) ? text : NULL;
}

/* Returns the name of the symbol with this value, or NULL if no symbol has this value. The hash
 * table (DT_HASH) contains the number of symbols. */
static const char *find_symbol(const struct image *image, uint64_t value) {
    uint64_t symbols = dynamic_value(image, DT_SYMTAB), strings = dynamic_value(image, DT_STRTAB);
    const uint32_t *hash = at(image, dynamic_value(image, DT_HASH), 8);
    if (!symbols || !strings || !hash || (const char *)hash == image->bytes)
        return NULL;
    for (uint32_t i = 1; i < hash[1]; i++) {
        const Elf64_Sym *symbol = at(image, symbols + i * sizeof *symbol, sizeof *symbol);
        if (!symbol)
            return NULL;
        if (symbol->st_value == value)
            return string_at(image, strings + symbol->st_name);
    }
    return NULL;
}

void softgpu_kernel_name(uint64_t kernel_object, char *name, size_t size) {
    struct softgpu_range range;
    const char *symbol = NULL;
    if (softgpu_find_range(kernel_object, &range) && range.size >= sizeof(Elf64_Ehdr) &&
        memcmp(range.host, ELFMAG, SELFMAG) == 0) {
        const struct image image = {range.host, range.size};
        symbol = find_symbol(&image, kernel_object - range.va);
    }
    size_t length = symbol ? strlen(symbol) : 0;
    if (length > 3 && strcmp(symbol + length - 3, ".kd") == 0)
        length -= 3;
    if (symbol)
        snprintf(name, size, "%.*s", (int)length, symbol);
    else
        snprintf(name, size, "(unnamed, at 0x%llx)", (unsigned long long)kernel_object);
}
