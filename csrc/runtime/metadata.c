#include "metadata.h"

#include <elf.h>
#include <string.h>

enum { AMDGPU_METADATA = 32, NOTE_ALIGNMENT = 4 };

/* MessagePack: a short string is 0xa0 plus its length, then the bytes. Maps and arrays count their
 * elements, not their bytes, so a string may be replaced by a shorter one. */
#define KEY "\xab.value_kind"
#define NONE KEY "\xabhidden_none"

static const struct kind {
    const char *text;
    size_t size;
} unwanted[] = {
#define KIND(prefix, name) {KEY prefix name, sizeof(KEY prefix name) - 1}
    KIND("\xb4", "hidden_default_queue"),
    KIND("\xb8", "hidden_completion_action"),
#undef KIND
};
enum { KINDS = sizeof unwanted / sizeof *unwanted };

bool metadata_wants_queue(const struct image *image) {
    if (image->kind != IMAGE_ELF || image->machine != EM_AMDGPU)
        return false;
    for (size_t i = 0; i < KINDS; i++)
        if (memmem(image->bytes, image->size, unwanted[i].text, unwanted[i].size))
            return true;
    return false;
}

static const struct kind *unwanted_at(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < KINDS; i++)
        if (size >= unwanted[i].size && memcmp(bytes, unwanted[i].text, unwanted[i].size) == 0)
            return &unwanted[i];
    return NULL;
}

/* Moves metadata down to `to`, with the replacements; returns how long it is there. */
static size_t rewrite(unsigned char *to, const unsigned char *from, size_t size) {
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        const struct kind *kind = unwanted_at(from + at, size - at);
        if (kind) {
            memcpy(to + used, NONE, sizeof NONE - 1);
            used += sizeof NONE - 1;
            at += kind->size;
        } else {
            to[used++] = from[at++];
        }
    }
    return used;
}

static size_t padded(size_t size) {
    return (size + NOTE_ALIGNMENT - 1) & ~(size_t)(NOTE_ALIGNMENT - 1);
}

/* Moves the notes of a segment together as they shrink; returns how long they are then. */
static size_t rewrite_notes(unsigned char *segment, size_t size) {
    size_t used = 0, at = 0;
    Elf64_Nhdr note;
    while (size - at >= sizeof note) {
        memcpy(&note, segment + at, sizeof note);
        const size_t head = sizeof note + padded(note.n_namesz), desc = note.n_descsz;
        if (head > size - at || desc > size - at - head)
            break; /* damaged: HIP is to say so */
        const bool metadata = note.n_type == AMDGPU_METADATA;
        const unsigned char *from = segment + at;
        unsigned char *to = segment + used;
        const size_t length = head + padded(desc), rest = size - at;
        at += length < rest ? length : rest; /* the last one may lack its padding */
        memmove(to, from, head);
        note.n_descsz = (Elf64_Word)desc;
        if (metadata)
            note.n_descsz = (Elf64_Word)rewrite(to + head, from + head, desc);
        else
            memmove(to + head, from + head, desc);
        memcpy(to, &note, sizeof note);
        memset(to + head + note.n_descsz, 0, padded(note.n_descsz) - note.n_descsz);
        used += head + padded(note.n_descsz);
    }
    memset(segment + used, 0, at - used);
    return used;
}

/* A table of the file's headers, or NULL if it is not within the file. */
static void *table_at(unsigned char *bytes, size_t size, uint64_t offset, size_t entries,
                      size_t entry_size) {
    const bool inside = offset <= size && entries <= (size - offset) / entry_size;
    return inside && offset % sizeof(uint64_t) == 0 ? bytes + offset : NULL;
}

static void shorten_section(unsigned char *bytes, size_t size, uint64_t offset, uint64_t length) {
    const Elf64_Ehdr *header = (const void *)bytes;
    Elf64_Shdr *sections =
        table_at(bytes, size, header->e_shoff, header->e_shnum, sizeof *sections);
    for (unsigned i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_NOTE && sections[i].sh_offset == offset)
            sections[i].sh_size = length;
}

void metadata_drop_queue(unsigned char *bytes, size_t size) {
    const Elf64_Ehdr *header = (const void *)bytes;
    if (size < sizeof *header)
        return;
    Elf64_Phdr *segments =
        table_at(bytes, size, header->e_phoff, header->e_phnum, sizeof *segments);
    for (unsigned i = 0; segments && i < header->e_phnum; i++) {
        Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_NOTE || segment->p_offset > size ||
            segment->p_filesz > size - segment->p_offset)
            continue;
        const size_t left = rewrite_notes(bytes + segment->p_offset, segment->p_filesz);
        segment->p_filesz = segment->p_memsz = left;
        shorten_section(bytes, size, segment->p_offset, left);
    }
}
