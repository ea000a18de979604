#include "image.h"
#include "ptx.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224, MAX_BUNDLE_ENTRIES = 1024 };

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__"; /* 24 bytes without the 0 */

/* True if [data, data + size) is mapped. msync(MS_ASYNC) writes nothing: it is the cheapest system
 * call that fails with ENOMEM where nothing is mapped. */
static bool is_mapped(const void *data, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)data & ~(page - 1);
    const uintptr_t last = (uintptr_t)data + size;
    if (last < (uintptr_t)data)
        return false;
    return msync((void *)begin, last - begin, MS_ASYNC) == 0;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Names of sections that a running kernel cannot write, though the loader may. .nv.shared is
 * workgroup memory. */
static bool is_loader_section(const char *name) {
    return strcmp(name, ".dynamic") == 0 || strcmp(name, ".relro_padding") == 0 ||
           strncmp(name, ".got", 4) == 0 || strncmp(name, ".nv.shared", 10) == 0;
}

/* The section headers say whether every section lies within the image and whether one holds
 * writable globals. Whatever is doubtful counts as writable: then the module is not shared. */
static void describe_sections(struct image *image, const Elf64_Ehdr *header) {
    const Elf64_Shdr *sections = (const void *)(image->bytes + header->e_shoff);
    const char *names = NULL;
    size_t names_size = 0;
    if (header->e_shstrndx < header->e_shnum) {
        const Elf64_Shdr *table = &sections[header->e_shstrndx];
        if (table->sh_offset < image->size && table->sh_size <= image->size - table->sh_offset) {
            names = (const char *)image->bytes + table->sh_offset;
            names_size = table->sh_size;
        }
    }
    if (!names_size || names[names_size - 1] != '\0') {
        image->damage = "its section names are missing: it is truncated or overwritten";
        return;
    }
    for (size_t i = 1; i < header->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        const bool in_file = section->sh_type != SHT_NOBITS;
        if (in_file && (section->sh_offset > image->size ||
                        section->sh_size > image->size - section->sh_offset)) {
            image->damage = "a section lies outside it: it is truncated or overwritten";
            return;
        }
        const bool writable = (section->sh_flags & SHF_WRITE) && (section->sh_flags & SHF_ALLOC) &&
                              section->sh_size > 0;
        if (writable &&
            (section->sh_name >= names_size || !is_loader_section(names + section->sh_name)))
            image->writable = true;
    }
}

static void describe_elf(struct image *image) {
    const Elf64_Ehdr *header = (const void *)image->bytes;
    image->kind = IMAGE_ELF;
    if (!is_mapped(image->bytes, sizeof *header)) {
        image->damage = "it ends within its ELF header";
        return;
    }
    image->machine = header->e_machine;
    if (image->machine != MACHINE_AMDGPU && image->machine != MACHINE_CUDA) {
        image->damage = "it is an ELF for another machine (x86-64?), not for a GPU";
        return;
    }
    const bool readable = header->e_ident[EI_CLASS] == ELFCLASS64 &&
                          header->e_ident[EI_DATA] == ELFDATA2LSB &&
                          header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum > 0;
    if (!readable)
        return; /* HIP is to say what it thinks of it */
    const size_t sections_end = header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr);
    const size_t programs_end = header->e_phoff + (size_t)header->e_phnum * sizeof(Elf64_Phdr);
    const size_t size = larger(sections_end, programs_end);
    if (header->e_shoff > SIZE_MAX / 2 || header->e_phoff > SIZE_MAX / 2 ||
        !is_mapped(image->bytes, size)) {
        image->damage = "its headers point outside it: it is truncated or overwritten";
        return;
    }
    image->size = size;
    image->head = sizeof *header;
    describe_sections(image, header);
}

struct bundle_entry {
    uint64_t offset, size, name_size; /* the name follows */
};

static void describe_bundle(struct image *image) {
    image->kind = IMAGE_BUNDLE;
    const size_t magic = sizeof bundle_magic - 1;
    uint64_t count;
    if (!is_mapped(image->bytes, magic + sizeof count)) {
        image->damage = "it ends within its bundle header";
        return;
    }
    memcpy(&count, image->bytes + magic, sizeof count);
    size_t at = magic + sizeof count, end = at;
    if (count > MAX_BUNDLE_ENTRIES)
        image->damage = "its bundle header is overwritten";
    for (uint64_t i = 0; i < count && !image->damage; i++) {
        struct bundle_entry entry;
        if (!is_mapped(image->bytes + at, sizeof entry)) {
            image->damage = "its bundle table points outside it: it is truncated";
            break;
        }
        memcpy(&entry, image->bytes + at, sizeof entry);
        if (entry.offset > SIZE_MAX / 4 || entry.size > SIZE_MAX / 4 || entry.name_size > 4096 ||
            !is_mapped(image->bytes + entry.offset, entry.size)) {
            image->damage = "its bundle table points outside it: it is truncated";
            break;
        }
        at += sizeof entry + entry.name_size;
        end = larger(end, larger(at, entry.offset + entry.size));
        if (entry.size >= sizeof(Elf64_Ehdr) &&
            memcmp(image->bytes + entry.offset, ELFMAG, SELFMAG) == 0) {
            struct image member = {.bytes = image->bytes + entry.offset};
            describe_elf(&member);
            image->writable |= member.writable || member.size == 0;
            if (member.damage)
                image->damage = member.damage;
            if (member.machine)
                image->machine = member.machine;
        } else if (entry.size > 0) {
            image->writable = true; /* nothing is known of it */
        }
    }
    if (image->damage)
        return;
    image->size = end;
    image->head = magic + sizeof count;
}

/* magic, version and method (2 bytes each), then by version: 2: size and uncompressed size in 4
 * bytes; 3: in 8 bytes. Version 1 does not say its size. What is inside cannot be seen without
 * unpacking it, so it may hold writable globals. */
static void describe_compressed(struct image *image) {
    image->kind = IMAGE_COMPRESSED;
    image->writable = true;
    uint16_t version;
    if (!is_mapped(image->bytes, 32)) {
        image->damage = "it ends within its header";
        return;
    }
    memcpy(&version, image->bytes + 4, sizeof version);
    uint64_t size = 0;
    if (version == 2)
        memcpy(&size, image->bytes + 8, 4);
    else if (version == 3)
        memcpy(&size, image->bytes + 8, 8);
    if (size && !is_mapped(image->bytes, size))
        image->damage = "it is shorter than its header says: it is truncated";
    else
        image->size = size;
    image->head = 32;
    if (image->size < image->head)
        image->size = 0;
}

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* of the entries behind it */
};
struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t packed_size, unused;
};
enum { FATBIN_ELF = 2 };

/* Its entries are made of one source, so one readable cubin tells whether there are globals. */
static void describe_fatbin(struct image *image) {
    image->kind = IMAGE_FATBIN;
    image->machine = MACHINE_CUDA;
    image->writable = true;
    struct fatbin_header header;
    memcpy(&header, image->bytes, sizeof header);
    const size_t size = header.header_size + header.size;
    if (header.size > SIZE_MAX / 4 || !is_mapped(image->bytes, size)) {
        image->damage = "it is shorter than its header says: it is truncated";
        return;
    }
    struct fatbin_entry entry;
    for (size_t at = header.header_size; at + sizeof entry <= size;
         at += entry.header_size + entry.size) {
        memcpy(&entry, image->bytes + at, sizeof entry);
        if (entry.header_size < sizeof entry || entry.size > size - at)
            break;
        struct image member = {.bytes = image->bytes + at + entry.header_size};
        if (entry.kind != FATBIN_ELF || entry.size < sizeof(Elf64_Ehdr) ||
            memcmp(member.bytes, ELFMAG, SELFMAG) != 0)
            continue; /* PTX, or packed */
        describe_elf(&member);
        image->writable = member.damage || member.size == 0 || member.writable;
    }
    image->size = size;
    image->head = sizeof header;
}

/* The length of a text, without its 0, as far as memory is mapped; SIZE_MAX if it does not end. */
static size_t text_length(const char *text) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t length = 0;;) {
        const size_t rest = page - ((uintptr_t)text + length) % page;
        if (!is_mapped(text + length, 1))
            return SIZE_MAX;
        const char *end = memchr(text + length, '\0', rest);
        if (end)
            return (size_t)(end - text);
        length += rest;
    }
}

static void describe_text(struct image *image) {
    const char *text = (const char *)image->bytes;
    image->kind = IMAGE_TEXT;
    const size_t length = text_length(text);
    if (length == SIZE_MAX || !strstr(text, ".version"))
        return;
    image->kind = IMAGE_PTX;
    image->machine = MACHINE_CUDA;
    image->size = length + 1;
    image->head = 1;
    image->writable = ptx_has_globals(text);
}

static bool is_text(const unsigned char *bytes) {
    for (size_t i = 0; i < 8 && bytes[i]; i++)
        if (bytes[i] >= 127 || (bytes[i] < 32 && !memchr("\t\n\r", bytes[i], 3)))
            return false;
    return bytes[0] != '\0';
}

static bool is_fatbin(const unsigned char *bytes) {
    static const unsigned char magic[] = {0x50, 0xED, 0x55, 0xBA};
    return memcmp(bytes, magic, sizeof magic) == 0 &&
           is_mapped(bytes, sizeof(struct fatbin_header));
}

struct image image_describe(const void *data) {
    struct image image = {.bytes = data, .kind = IMAGE_UNKNOWN};
    const unsigned char *bytes = data;
    if (!is_mapped(data, 8))
        image.damage = "its address is not mapped";
    else if (memcmp(bytes, ELFMAG, SELFMAG) == 0)
        describe_elf(&image);
    else if (memcmp(bytes, "CCOB", 4) == 0)
        describe_compressed(&image);
    else if (is_mapped(data, sizeof bundle_magic) &&
             memcmp(bytes, bundle_magic, sizeof bundle_magic - 1) == 0)
        describe_bundle(&image);
    else if (memcmp(bytes, "BC\xC0\xDE", 4) == 0)
        image.kind = IMAGE_BITCODE;
    else if (is_fatbin(bytes))
        describe_fatbin(&image);
    else if (is_text(bytes))
        describe_text(&image);
    return image;
}

/* 8 bytes a step; only spreads images over buckets, equality is by bytes. */
uint64_t image_hash(const struct image *image) {
    uint64_t hash = image->size * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i + 8 <= image->size; i += 8) {
        uint64_t word;
        memcpy(&word, image->bytes + i, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

const char *image_kind_text(const struct image *image) {
    switch (image->kind) {
    case IMAGE_ELF:
        switch (image->machine) {
        case MACHINE_AMDGPU:
            return "an AMDGPU code object";
        case MACHINE_CUDA:
            return "an NVIDIA cubin";
        default:
            return "an ELF for another machine";
        }
    case IMAGE_BUNDLE:
        return "a clang offload bundle";
    case IMAGE_COMPRESSED:
        return "a compressed offload bundle";
    case IMAGE_FATBIN:
        return "an NVIDIA fatbin";
    case IMAGE_PTX:
        return "PTX, NVIDIA's assembly, not binary code";
    case IMAGE_TEXT:
        return "text (assembly or PTX), not binary code";
    case IMAGE_BITCODE:
        return "LLVM bitcode, not binary code";
    case IMAGE_UNKNOWN:
        break;
    }
    return "neither a code object nor an offload bundle";
}
