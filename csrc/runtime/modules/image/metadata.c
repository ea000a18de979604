#include "modules/image/metadata.h"
#include "mgpu.h"
#include "modules/image/msgpack.h"
#include "proof.h"

#include <elf.h>
#include <string.h>

enum { AMDGPU_METADATA = 32, NOTE_ALIGNMENT = 4 };

/* ---- notes ---- */

static size_t padded(size_t size) {
    return (size + NOTE_ALIGNMENT - 1) & ~(size_t)(NOTE_ALIGNMENT - 1);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* A note. `head` is the size of the note's header and name, and `text` is the size of the note's
 * text. */
struct note {
    Elf64_Nhdr header;
    size_t head, text, length; /* `length` includes the padding, which the last note may lack */
};

/* Reads the note at `at`. Returns false after the last note, or if the rest of the segment is
 * damaged; HIP must report such damage. */
static bool note_at(const unsigned char *segment, size_t size, size_t at, struct note *note) {
    const size_t rest = size - at;
    if (rest < sizeof note->header)
        return false;
    memcpy(&note->header, segment + at, sizeof note->header);
    note->head = sizeof note->header + padded(note->header.n_namesz);
    note->text = note->header.n_descsz;
    if (note->head > rest || note->text > rest - note->head)
        return false;
    note->length = smaller(note->head + padded(note->text), rest);
    return true;
}

/* Copies the file's header to *header; returns the number of program headers, or 0 if they are not
 * within the file. */
static unsigned segment_count(const unsigned char *bytes, size_t size, Elf64_Ehdr *header) {
    if (size < sizeof *header)
        return 0;
    memcpy(header, bytes, sizeof *header);
    const uint64_t offset = header->e_phoff;
    const bool inside = offset <= size && header->e_phnum <= (size - offset) / sizeof(Elf64_Phdr);
    return inside ? header->e_phnum : 0;
}

/* Compilers write one or two note segments. In a damaged file, very many segments may describe the
 * same bytes. */
enum { NOTE_SEGMENTS = 16 };

/* Copies a program header to *segment. Returns true if the program header describes notes within
 * the file, which has `size` bytes. Counts such segments in *seen, and returns false after
 * NOTE_SEGMENTS of them. */
static bool note_segment_at(const unsigned char *at, size_t size, Elf64_Phdr *segment,
                            unsigned *seen) {
    memcpy(segment, at, sizeof *segment);
    return segment->p_type == PT_NOTE && segment->p_offset <= size &&
           segment->p_filesz <= size - segment->p_offset && (*seen)++ < NOTE_SEGMENTS;
}

/* ---- what the metadata say ---- */

/* Finds the metadata of a code object; returns false if there is none. */
static bool find_metadata(const struct image *image, struct msgpack *metadata) {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    const bool ours = image->kind == IMAGE_ELF && image->machine == EM_AMDGPU;
    const unsigned count = ours ? segment_count(image->bytes, image->size, &header) : 0;
    unsigned seen = 0;
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *at = image->bytes + header.e_phoff + i * sizeof segment;
        if (!note_segment_at(at, image->size, &segment, &seen))
            continue;
        const unsigned char *notes = image->bytes + segment.p_offset;
        struct note note;
        for (size_t n = 0; note_at(notes, segment.p_filesz, n, &note); n += note.length) {
            metadata->at = notes + n + note.head;
            metadata->end = metadata->at + note.text;
            if (note.header.n_type == AMDGPU_METADATA)
                return true;
        }
    }
    return false;
}

/* Finds a key in the map at `map`, and stores the value's position in *value. Returns false if
 * there is no map, or no such key. */
static bool find_key(struct msgpack map, const char *key, struct msgpack *value) {
    uint32_t pairs;
    const char *text;
    size_t length;
    if (!msgpack_map(&map, &pairs))
        return false;
    for (; pairs > 0; pairs--) {
        if (!msgpack_text(&map, &text, &length))
            return false;
        *value = map;
        if (length == strlen(key) && memcmp(text, key, length) == 0)
            return true;
        if (!msgpack_skip(&map))
            return false;
    }
    return false;
}

bool metadata_may_print(const struct image *image) {
    static const char *const words[] = {"hostcall", "printf"};
    bool silent = !image->opaque;
    for (size_t i = 0; i < sizeof words / sizeof *words && silent; i++)
        silent = PROOF(kernels_do_not_print,
                       !memmem(image->bytes, image->size, words[i], strlen(words[i])));
    return !silent;
}

static bool has_name(struct msgpack kernel, const char *name) {
    struct msgpack value;
    const char *text;
    size_t length;
    return find_key(kernel, ".name", &value) && msgpack_text(&value, &text, &length) &&
           length == strlen(name) && memcmp(text, name, length) == 0;
}

/* Returns a number from a kernel's metadata; 0: unknown. */
static uint64_t kernel_number(const struct image *image, const char *kernel, const char *key) {
    struct msgpack metadata, kernels, value;
    uint32_t count;
    uint64_t number;
    if (!find_metadata(image, &metadata) || !find_key(metadata, "amdhsa.kernels", &kernels) ||
        !msgpack_array(&kernels, &count))
        return 0;
    for (; count > 0; count--) {
        if (has_name(kernels, kernel))
            return find_key(kernels, key, &value) && msgpack_number(&value, &number) ? number : 0;
        if (!msgpack_skip(&kernels))
            return 0;
    }
    return 0;
}

uint64_t metadata_block_limit(const struct image *image, const char *kernel) {
    return kernel_number(image, kernel, ".max_flat_workgroup_size");
}

uint64_t metadata_group_memory(const struct image *image, const char *kernel) {
    return kernel_number(image, kernel, ".group_segment_fixed_size");
}

bool metadata_chip(const struct image *image, const char **chip, size_t *length) {
    struct msgpack metadata, value;
    if (!find_metadata(image, &metadata) || !find_key(metadata, "amdhsa.target", &value) ||
        !msgpack_text(&value, chip, length))
        return false;
    /* A target is a triple with an empty environment, and then the chip:
     * "amdgcn-amd-amdhsa--gfx9-generic". A chip's name may contain single dashes, so the search
     * looks for two. */
    const char *dashes = memmem(*chip, *length, "--", 2);
    if (dashes) {
        *length -= (size_t)(dashes + 2 - *chip);
        *chip = dashes + 2;
    }
    return *length > 0;
}
