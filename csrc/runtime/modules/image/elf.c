/* Reads the size of code objects (AMD) and cubins (NVIDIA). Finds out whether a kernel can write to
 * the globals in such a file, or the host can set its constants. */
#include "modules/image/formats.h"

#include <elf.h>
#include <string.h>

bool image_is_elf(struct view *view) {
    return view_holds(view, 0, SELFMAG) && memcmp(view->bytes, ELFMAG, SELFMAG) == 0;
}

static Elf64_Shdr section_of(const unsigned char *bytes, const Elf64_Ehdr *header, unsigned index) {
    Elf64_Shdr section; /* an image may be unaligned */
    memcpy(&section, bytes + header->e_shoff + index * sizeof section, sizeof section);
    return section;
}

static uint64_t sections_size(const Elf64_Ehdr *header) {
    return (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
}

static uint64_t segments_size(const Elf64_Ehdr *header) {
    return (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
}

/* Returns the end of a part of the file, or UINT64_MAX if offset plus size overflows. */
static uint64_t end_of(uint64_t offset, uint64_t size) {
    uint64_t end;
    return __builtin_add_overflow(offset, size, &end) ? UINT64_MAX : end;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t tables_end(const Elf64_Ehdr *header) {
    return larger(end_of(header->e_shoff, sections_size(header)),
                  end_of(header->e_phoff, segments_size(header)));
}

static uint64_t section_end(const Elf64_Shdr *section) {
    return section->sh_type == SHT_NOBITS ? section->sh_offset
                                          : end_of(section->sh_offset, section->sh_size);
}

/* Returns the size of the whole file: the end of the last part that a header of the file describes.
 * HIP does not know the size. HIP reads to the end of the section that begins last, and crashes if
 * some of these bytes are unreadable. */
static uint64_t whole_size(const unsigned char *bytes, const Elf64_Ehdr *header) {
    uint64_t end = tables_end(header);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr section = section_of(bytes, header, i);
        end = larger(end, section_end(&section));
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, bytes + header->e_phoff + i * sizeof segment, sizeof segment);
        end = larger(end, end_of(segment.p_offset, segment.p_filesz));
    }
    return end;
}

/* The names of an image's sections or symbols. If the image has no names, `text` is NULL. */
struct names {
    const char *text;
    uint64_t size;
};

static struct names names_at(const struct image *image, const Elf64_Ehdr *header, unsigned index) {
    const struct names none = {NULL, 0};
    if (index >= header->e_shnum)
        return none;
    const Elf64_Shdr table = section_of(image->bytes, header, index);
    const char *text = (const char *)image->bytes + table.sh_offset;
    if (table.sh_type != SHT_STRTAB || table.sh_size == 0 || text[table.sh_size - 1] != '\0')
        return none;
    return (struct names){text, table.sh_size};
}

/* Returns true if the name of a writable section shows that the section contains no globals of
 * kernels. The loader writes to some of these sections. The sections .nv.shared describe workgroup
 * memory. */
static bool is_loaders(const char *name) {
    static const char *const loaders[] = {".dynamic", ".relro_padding", ".got", ".got.plt"};
    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
        if (strcmp(name, loaders[i]) == 0)
            return true;
    return strncmp(name, ".nv.shared", strlen(".nv.shared")) == 0;
}

/* A section of unknown kind counts as writable, so that the module is not shared. */
static bool is_writable(const Elf64_Shdr *section, const struct names *names) {
    const uint64_t both = SHF_WRITE | SHF_ALLOC;
    if ((section->sh_flags & both) != both || section->sh_size == 0)
        return false;
    return section->sh_name >= names->size || !is_loaders(names->text + section->sh_name);
}

/* ---- constants that the host can set ----
 *
 * No kernel writes to a section of constants. The host can find a constant by its name
 * (hipModuleGetGlobal), and copy a value to the constant. */

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Returns whether a symbol is a variable and not a kernel's descriptor. */
static bool is_variable(const Elf64_Sym *symbol, const char *names, uint64_t size) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
           (symbol->st_name >= size || !ends_with(names + symbol->st_name, ".kd"));
}

/* A symbol of unknown kind counts as a variable. */
static bool has_variables(const struct image *image, const Elf64_Ehdr *header,
                          const Elf64_Shdr *table) {
    const struct names names = names_at(image, header, table->sh_link);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image->bytes + table->sh_offset + at, sizeof symbol);
        if (is_variable(&symbol, names.text, names.size))
            return true;
    }
    return false;
}

/* Returns true for a table of symbols that names variables, and for the section of CUDA's
 * __constant__ variables. */
static bool has_constants(const struct image *image, const Elf64_Ehdr *header,
                          const Elf64_Shdr *section, const struct names *names) {
    static const char constants[] = ".nv.constant3";
    if (section->sh_type == SHT_DYNSYM)
        return has_variables(image, header, section);
    return section->sh_size != 0 && section->sh_name < names->size &&
           strncmp(names->text + section->sh_name, constants, sizeof constants - 1) == 0;
}

/* ---- all of it ---- */

static void describe_sections(struct image *image, const Elf64_Ehdr *header) {
    const struct names names = names_at(image, header, header->e_shstrndx);
    for (unsigned i = 1; i < header->e_shnum; i++) {
        const Elf64_Shdr section = section_of(image->bytes, header, i);
        image->writable |=
            DOUBT(section_is_writable, is_writable(&section, &names)) ||
            DOUBT(host_sets_constants, has_constants(image, header, &section, &names));
    }
}

/* Returns whether a file has the form that this reader supports. The driver judges all other forms.
 */
static bool is_plain(const Elf64_Ehdr *header) {
    return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum > 0 &&
           (header->e_phentsize == sizeof(Elf64_Phdr) || header->e_phnum == 0);
}

void image_describe_elf(struct image *image, struct view *view) {
    Elf64_Ehdr header;
    if (!view_holds(view, 0, sizeof header))
        return;
    memcpy(&header, view->bytes, sizeof header);
    image->machine = header.e_machine;
    if ((image->machine != MACHINE_AMDGPU && image->machine != MACHINE_CUDA) || !is_plain(&header))
        return;
    if (!view_holds(view, header.e_shoff, sections_size(&header)) ||
        !view_holds(view, header.e_phoff, segments_size(&header)))
        return;
    const uint64_t size = whole_size(view->bytes, &header);
    const bool is_readable = PROOF(whole_elf_is_readable, view_holds(view, 0, size));
    if (!is_readable)
        return;
    image->size = size;
    image->head = sizeof header;
    image->sized_by_tables = size > tables_end(&header);
    describe_sections(image, &header);
}
