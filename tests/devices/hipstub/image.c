#include "image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC = 24, EM_AMD_GPU = 224, MOST_ENTRIES = 1024 };

/* Reads memory that may be unmapped. */
static bool peek(const void *from, void *to, size_t bytes) {
    struct iovec local = {to, bytes};
    struct iovec remote = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(gettid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* Returns the size of an ELF object, or 0 if a section header is missing or invalid. */
static size_t elf_size(const unsigned char *image) {
    Elf64_Ehdr header;
    if (!peek(image, &header, sizeof header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_AMD_GPU || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
        return 0;
    size_t end = header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        if (!peek(image + header.e_shoff + i * sizeof section, &section, sizeof section))
            return 0;
        if ((section.sh_type == SHT_NULL) != (i == 0))
            return 0;
        if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
            end = section.sh_offset + section.sh_size;
    }
    unsigned char last;
    return peek(image + end - 1, &last, 1) ? end : 0;
}

/* Returns the size of an offload bundle, computed from its table, or 0 if the bundle is
 * incomplete. */
static size_t bundle_size(const unsigned char *image) {
    uint64_t count;
    if (!peek(image + BUNDLE_MAGIC, &count, sizeof count) || count > MOST_ENTRIES)
        return 0;
    const unsigned char *at = image + BUNDLE_MAGIC + sizeof count;
    size_t end = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t entry[3]; /* offset and size of the image, and length of the target name; the name
                              follows */
        if (!peek(at, entry, sizeof entry))
            return 0;
        at += sizeof entry + entry[2];
        if (entry[1] != 0 && entry[0] + entry[1] > end) /* AMD's HIP ignores an empty entry */
            end = entry[0] + entry[1];
    }
    unsigned char last;
    return end != 0 && peek(image + end - 1, &last, 1) ? end : 0;
}

/* Returns the size of a compressed bundle, or 0 if the header has version 1, which contains no
 * size. */
static size_t compressed_size(const unsigned char *image) {
    struct {
        char magic[4];
        uint16_t version, method;
        uint32_t size;
    } header;
    if (!peek(image, &header, sizeof header) || header.version < 2)
        return 0;
    uint64_t size = header.size;
    if (header.version >= 3 && !peek(image + 8, &size, sizeof size))
        return 0;
    unsigned char last;
    const bool wraps = (uintptr_t)image + size < size;
    return size != 0 && !wraps && peek(image + size - 1, &last, 1) ? size : 0;
}

hipError_t image_copy(const void *image, unsigned char **copy, size_t *bytes) {
    char magic[BUNDLE_MAGIC] = {0};
    size_t size;
    if (!peek(image, magic, 4))
        return hipErrorInvalidValue;
    if (memcmp(magic, ELFMAG, SELFMAG) == 0)
        size = elf_size(image);
    else if (memcmp(magic, "CCOB", 4) == 0)
        size = compressed_size(image);
    else if (peek(image, magic, sizeof magic) && memcmp(magic, bundle_magic, BUNDLE_MAGIC) == 0)
        size = bundle_size(image);
    else
        return hipErrorInvalidKernelFile;
    if (size == 0)
        return hipErrorInvalidImage;
    *copy = malloc(size);
    *bytes = size;
    if (!peek(image, *copy, size)) {
        free(*copy);
        return hipErrorInvalidImage;
    }
    return hipSuccess;
}

static bool holds(const unsigned char *image, size_t bytes, const char *name, const char *suffix) {
    char text[512];
    size_t length = strlen(name), more = strlen(suffix);
    if (length + more + 2 > sizeof text)
        return false;
    text[0] = '\0';
    memcpy(text + 1, name, length);
    memcpy(text + 1 + length, suffix, more + 1);
    return memmem(image, bytes, text, length + more + 2) != NULL;
}

bool image_has_kernel(const unsigned char *image, size_t bytes, const char *name) {
    if (*name == '\0')
        return false;
    if (memcmp(image, "CCOB", 4) == 0)
        return true;
    /* Since code object v3, a kernel's descriptor has a symbol, and the symbol's name is the
     * kernel's name and ".kd". Handwritten images contain only the kernel's name. */
    return holds(image, bytes, name, ".kd") || holds(image, bytes, name, "");
}

bool image_global(const unsigned char *image, size_t bytes, unsigned table, const char *name,
                  size_t *size, const unsigned char **value) {
    /* In a bundle, memmem finds the first code object, which follows the table. */
    const unsigned char *elf = memmem(image, bytes, ELFMAG, SELFMAG);
    if (elf == NULL || elf_size(elf) == 0)
        return false;
    const Elf64_Ehdr *header = (const void *)elf;
    const Elf64_Shdr *sections = (const void *)(elf + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != table)
            continue;
        const Elf64_Sym *symbols = (const void *)(elf + sections[i].sh_offset);
        const char *names = (const char *)elf + sections[sections[i].sh_link].sh_offset;
        for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s) {
            if (ELF64_ST_TYPE(symbols[s].st_info) != STT_OBJECT || symbols[s].st_size == 0 ||
                symbols[s].st_shndx >= header->e_shnum ||
                strcmp(names + symbols[s].st_name, name) != 0)
                continue;
            const Elf64_Shdr *home = &sections[symbols[s].st_shndx];
            *size = symbols[s].st_size;
            *value = home->sh_type == SHT_NOBITS
                         ? NULL
                         : elf + home->sh_offset + (symbols[s].st_value - home->sh_addr);
            return true;
        }
    }
    return false;
}
