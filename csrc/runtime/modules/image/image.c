/* Reads images: their size, and whether a kernel can write to their globals.
 *
 * First how memory is looked at that may not be there, then a reader for each format, and last what
 * chooses among them. */
#include "modules/image/image.h"
#include "modules/image/ptx.h"
#include "proof.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- memory that may not be there: mapped is not readable ---- */

struct view {
    const unsigned char *bytes;
    size_t limit; /* nothing behind it is looked at; SIZE_MAX: only reading can tell */
    size_t known; /* so many bytes from the start can be read */
};

static uintptr_t page_size(void) {
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* rt_sigprocmask reads a mask of 8 bytes before it looks at the operation. It answers EFAULT if
 * they cannot be read, else EINVAL, and changes nothing. Unlike process_vm_readv and
 * MADV_POPULATE_READ no kernel lacks it and no sandbox forbids it. */
static bool page_is_readable(uintptr_t page) {
    const int no_such_change = ~0;
    const long mask_bytes = 8;
    return page && (syscall(SYS_rt_sigprocmask, no_such_change, page, NULL, mask_bytes) == 0 ||
                    PROOF(page_is_readable, errno != EFAULT));
}

/* Both at the begin of a page. */
static bool pages_are_readable(uintptr_t begin, uintptr_t end) {
    const int error = errno; /* the program's */
    bool readable = true;
    for (uintptr_t page = begin; page < end && readable; page += page_size())
        readable = page_is_readable(page);
    errno = error;
    return readable;
}

static uintptr_t page_of(uintptr_t address) {
    return address & ~(page_size() - 1);
}

/* True if `size` bytes at `offset` can be read, and all before them: what lies behind a gap is no
 * part of the same file. A page that is not known yet costs one system call, 50 ns. */
static bool view_holds(struct view *view, uint64_t offset, uint64_t size) {
    const uintptr_t start = (uintptr_t)view->bytes;
    uint64_t end;
    uintptr_t last;
    if (__builtin_add_overflow(offset, size, &end) || end > view->limit)
        return false;
    if (end <= view->known)
        return true;
    if (__builtin_add_overflow(start, end - 1, &last) || page_of(last) + page_size() == 0)
        return false;
    const uintptr_t behind = page_of(last) + page_size();
    if (!pages_are_readable(page_of(start + view->known), behind))
        return false;
    view->known = behind - start < view->limit ? behind - start : view->limit;
    return true;
}

/* A part of a view that can be read, as a view of its own: nothing of it is asked again. */
static struct view view_part(const struct view *view, uint64_t offset, uint64_t size) {
    return (struct view){view->bytes + offset, size, size};
}

/* The length of the text that begins a view, without its 0; SIZE_MAX if reading ends before it. */
static size_t view_text_length(struct view *view) {
    size_t length = 0;
    while (view_holds(view, length, 1)) {
        const char *from = (const char *)view->bytes + length;
        const char *end = memchr(from, '\0', view->known - length);
        if (end)
            return length + (size_t)(end - from);
        length = view->known;
    }
    return SIZE_MAX;
}

/* ---- code objects of AMD's, and cubins ---- */

static bool is_elf(struct view *view) {
    return view_holds(view, 0, SELFMAG) && memcmp(view->bytes, ELFMAG, SELFMAG) == 0;
}

static Elf64_Ehdr header_of(const unsigned char *bytes) {
    Elf64_Ehdr header;
    memcpy(&header, bytes, sizeof header); /* an image may lie at any address */
    return header;
}

static Elf64_Shdr section_of(const unsigned char *bytes, const Elf64_Ehdr *header, unsigned index) {
    Elf64_Shdr section;
    memcpy(&section, bytes + header->e_shoff + index * sizeof section, sizeof section);
    return section;
}

static uint64_t sections_size(const Elf64_Ehdr *header) {
    return (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
}

static uint64_t segments_size(const Elf64_Ehdr *header) {
    return (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
}

/* The end of a part of the file; UINT64_MAX if no file reaches that far. */
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
    return section->sh_type == SHT_NOBITS ? 0 : end_of(section->sh_offset, section->sh_size);
}

/* How much HIP reads of a code object without being told its size: to the end of the section that
 * begins last (amd::Elf::getElfSize). HIP would crash on one that cannot be read. */
static uint64_t size_to_hip(const unsigned char *bytes, const Elf64_Ehdr *header) {
    uint64_t last = header->e_shoff, end = end_of(last, sections_size(header));
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr section = section_of(bytes, header, i);
        if (section.sh_offset <= last)
            continue;
        last = section.sh_offset;
        end = larger(last, section_end(&section));
    }
    return end;
}

/* To the end of all that any of its headers names. */
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

/* The names of an image's sections or symbols; NULL if it does not say them. */
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

static struct names names_of(const struct image *image, const Elf64_Ehdr *header) {
    return names_at(image, header, header->e_shstrndx);
}

/* Names of sections that a running kernel cannot write, though the loader may. .nv.shared is
 * workgroup memory. */
static bool is_loaders(const char *name) {
    static const char *const loaders[] = {".dynamic", ".relro_padding", ".got", ".got.plt"};
    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
        if (strcmp(name, loaders[i]) == 0)
            return true;
    return strncmp(name, ".nv.shared", strlen(".nv.shared")) == 0;
}

/* Whatever is doubtful counts as writable: then the module is not shared. */
static bool is_writable(const Elf64_Shdr *section, const struct names *names) {
    const uint64_t both = SHF_WRITE | SHF_ALLOC;
    if ((section->sh_flags & both) != both || section->sh_size == 0)
        return false;
    return section->sh_name >= names->size || !is_loaders(names->text + section->sh_name);
}

static bool has_writable(const struct image *image, const Elf64_Ehdr *header) {
    const struct names names = names_of(image, header);
    for (unsigned i = 1; i < header->e_shnum; i++) {
        const Elf64_Shdr section = section_of(image->bytes, header, i);
        if (DOUBT(section_is_writable, is_writable(&section, &names)))
            return true;
    }
    return false;
}

/* ---- constants that the host can set ----
 *
 * No kernel writes them. But HIP gives their addresses by their names (hipModuleGetGlobal), and
 * copies to them. */

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* A symbol that HIP knows, of a variable; not the descriptor of a kernel. */
static bool is_variable(const Elf64_Sym *symbol, const char *names, uint64_t size) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
           (symbol->st_name >= size || !ends_with(names + symbol->st_name, ".kd"));
}

/* Whatever is doubtful counts, here too. */
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

/* CUDA's __constant__ variables have a section of their own. */
static bool is_constants(const Elf64_Shdr *section, const struct names *names) {
    static const char constants[] = ".nv.constant3";
    return section->sh_size != 0 && section->sh_name < names->size &&
           strncmp(names->text + section->sh_name, constants, sizeof constants - 1) == 0;
}

static bool has_settable(const struct image *image, const Elf64_Ehdr *header) {
    const struct names names = names_of(image, header);
    for (unsigned i = 1; i < header->e_shnum; i++) {
        const Elf64_Shdr section = section_of(image->bytes, header, i);
        if (section.sh_type == SHT_DYNSYM ? has_variables(image, header, &section)
                                          : is_constants(&section, &names))
            return true;
    }
    return false;
}

/* A form that is read here. The driver judges the others. */
static bool is_plain(const Elf64_Ehdr *header) {
    return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum > 0 &&
           (header->e_phentsize == sizeof(Elf64_Phdr) || header->e_phnum == 0);
}

static void describe_elf(struct image *image, struct view *view) {
    image->kind = IMAGE_ELF;
    if (!view_holds(view, 0, sizeof(Elf64_Ehdr))) {
        image->damage = "it ends within its ELF header";
        return;
    }
    const Elf64_Ehdr header = header_of(view->bytes);
    image->machine = header.e_machine;
    /* AMD's HIP takes none, and up to 6 it crashes with some: a stripped program, for example. */
    if (image->machine != MACHINE_AMDGPU && image->machine != MACHINE_CUDA) {
        image->damage = "it is an ELF for another machine (x86-64?), not for a GPU";
        return;
    }
    /* With the first AMD's HIP crashes, with the second up to 6; 7 refuses it. */
    if (image->machine == MACHINE_AMDGPU &&
        DOUBT(elf_crashes_hip, header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum == 0)) {
        image->damage = "it is an ELF of 32 bits, or one without sections";
        return;
    }
    if (!is_plain(&header))
        return;
    if (!view_holds(view, header.e_shoff, sections_size(&header)) ||
        !view_holds(view, 0, size_to_hip(view->bytes, &header))) {
        image->damage = "its headers point outside it: it is truncated or overwritten";
        return;
    }
    const bool has_segments = view_holds(view, header.e_phoff, segments_size(&header));
    const uint64_t size = has_segments ? whole_size(view->bytes, &header) : 0;
    if (!has_segments || !PROOF(whole_elf_is_readable, view_holds(view, 0, size))) {
        /* AMD's HIP may never look there; NVIDIA's driver does, and would crash. */
        if (image->machine == MACHINE_CUDA)
            image->damage = "its headers point outside it: it is truncated or overwritten";
        return;
    }
    image->size = size;
    image->head = sizeof header;
    image->sized_by_tables = size > tables_end(&header);
    image->writable = has_writable(image, &header);
    image->settable = !image->writable && has_settable(image, &header);
}

static bool lies_at(const struct image *image, const unsigned char *data, uint64_t offset,
                    uint64_t size) {
    return memcmp(image->bytes + offset, data + offset, size) == 0;
}

static bool elf_tables_lie_at(const struct image *image, const unsigned char *data) {
    const Elf64_Ehdr header = header_of(image->bytes);
    return lies_at(image, data, 0, sizeof header) &&
           lies_at(image, data, header.e_shoff, sections_size(&header)) &&
           lies_at(image, data, header.e_phoff, segments_size(&header));
}

/* ---- files that hold several images: clang's offload bundles, NVIDIA's fatbins ----
 *
 * The driver takes the entry for its GPU and does not look at the others. So a damaged one is no
 * reason to refuse the rest. The driver is then given all of it, uncached. */

enum { ENTRIES = 1024, NAME_BYTES = 4096 }; /* more are not looked at */

/* The known part of a file's entries so far. */
struct contents {
    uint64_t end;  /* of the last one, from the begin of the file */
    bool readable; /* one that has bytes can be read */
    bool doubtful; /* one cannot, or is damaged */
    bool writable; /* one holds globals that a kernel can write, or may hold some */
    bool settable; /* one holds constants that the host can set */
    bool opaque;   /* one is packed, or of a kind that is not read here */
};

static void add_elf(struct contents *contents, struct image *whole, struct view *entry) {
    struct image image = {.bytes = entry->bytes};
    describe_elf(&image, entry);
    contents->doubtful |= image.damage != NULL;
    contents->writable |= DOUBT(bundle_entry_is_writable, image.writable) || image.size == 0;
    contents->settable |= image.settable;
    if (image.machine)
        whole->machine = image.machine;
}

static void add_entry(struct contents *contents, struct image *whole, struct view *view,
                      uint64_t offset, uint64_t size) {
    if (DOUBT(bundle_entry_is_empty, size == 0))
        return;
    if (!view_holds(view, offset, size)) {
        contents->doubtful = true;
        return;
    }
    struct view entry = view_part(view, offset, size);
    contents->readable = true;
    if (offset + size > contents->end)
        contents->end = offset + size;
    if (is_elf(&entry))
        add_elf(contents, whole, &entry);
    else
        contents->writable = contents->opaque = true;
}

/* ---- clang's offload bundle ---- */

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC = sizeof bundle_magic - 1, BUNDLE_HEAD = BUNDLE_MAGIC + sizeof(uint64_t) };

struct bundle_entry {
    uint64_t offset, size, name_size; /* the name follows */
};

static bool is_bundle(struct view *view) {
    return view_holds(view, 0, BUNDLE_MAGIC) &&
           memcmp(view->bytes, bundle_magic, BUNDLE_MAGIC) == 0;
}

static uint64_t count_of(const unsigned char *bundle) {
    uint64_t count;
    memcpy(&count, bundle + BUNDLE_MAGIC, sizeof count);
    return count;
}

static struct bundle_entry bundle_entry_at(const unsigned char *bundle, size_t at) {
    struct bundle_entry entry;
    memcpy(&entry, bundle + at, sizeof entry);
    return entry;
}

/* False if the table cannot be read to its end. */
static bool read_bundle_table(struct contents *contents, struct image *image, struct view *view) {
    const uint64_t count = count_of(view->bytes);
    size_t at = BUNDLE_HEAD;
    for (uint64_t i = 0; i < count; i++) {
        if (i == ENTRIES || !view_holds(view, at, sizeof(struct bundle_entry)))
            return false;
        const struct bundle_entry entry = bundle_entry_at(view->bytes, at);
        at += sizeof entry;
        if (entry.name_size > NAME_BYTES || !view_holds(view, at, entry.name_size))
            return false;
        at += entry.name_size;
        add_entry(contents, image, view, entry.offset, entry.size);
    }
    if (at > contents->end)
        contents->end = at;
    return true;
}

static void describe_bundle(struct image *image, struct view *view) {
    struct contents contents = {.end = BUNDLE_HEAD};
    image->kind = IMAGE_BUNDLE;
    if (!view_holds(view, 0, BUNDLE_HEAD)) {
        image->damage = "it ends within its bundle header";
        return;
    }
    contents.doubtful |= !read_bundle_table(&contents, image, view);
    if (contents.doubtful && !contents.readable)
        image->damage = "its bundle table points outside it: it is truncated or overwritten";
    if (contents.doubtful || !view_holds(view, 0, contents.end))
        return;
    image->size = contents.end;
    image->head = BUNDLE_HEAD;
    image->sized_by_tables = true;
    image->writable = contents.writable;
    image->settable = contents.settable && !contents.writable;
    image->opaque = contents.opaque;
}

static bool bundle_table_lies_at(const struct image *image, const unsigned char *data) {
    size_t at = BUNDLE_HEAD;
    if (memcmp(image->bytes, data, BUNDLE_HEAD) != 0)
        return false;
    for (uint64_t count = count_of(image->bytes); count > 0; count--) {
        const struct bundle_entry entry = bundle_entry_at(image->bytes, at);
        if (memcmp(image->bytes + at, data + at, sizeof entry) != 0)
            return false;
        at += sizeof entry + entry.name_size;
    }
    return true;
}

/* ---- the same, compressed ---- */

enum { COMPRESSED_HEAD = 16 };

/* Magic, version and method (2 bytes each), then by version: 2: size and uncompressed size in 4
 * bytes; 3: in 8 bytes. The others do not say their size, or not here: HIP is to look. Nobody can
 * see inside without unpacking it, so it may hold writable globals. */
static void describe_compressed(struct image *image, struct view *view) {
    uint16_t version;
    uint64_t size = 0;
    image->kind = IMAGE_COMPRESSED;
    image->writable = image->opaque = true;
    if (!view_holds(view, 0, COMPRESSED_HEAD))
        return;
    memcpy(&version, view->bytes + 4, sizeof version);
    if (version == 2)
        memcpy(&size, view->bytes + 8, 4);
    else if (version == 3)
        memcpy(&size, view->bytes + 8, 8);
    if (size < COMPRESSED_HEAD)
        return;
    if (!view_holds(view, 0, size)) {
        image->damage = "it is shorter than its header says: it is truncated";
        return;
    }
    image->size = size;
    image->head = COMPRESSED_HEAD;
}

/* ---- NVIDIA's fatbin ---- */

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

static bool is_fatbin(struct view *view) {
    static const unsigned char magic[] = {0x50, 0xED, 0x55, 0xBA};
    return view_holds(view, 0, sizeof(struct fatbin_header)) &&
           memcmp(view->bytes, magic, sizeof magic) == 0;
}

/* The entries are made of one source, so the cubins that can be read tell whether there are
 * globals. PTX and packed entries need not be looked at. */
static void read_entries(struct contents *contents, struct image *image, struct view *view,
                         uint64_t at) {
    bool seen = false;
    struct fatbin_entry entry;
    while (view_holds(view, at, sizeof entry)) {
        memcpy(&entry, view->bytes + at, sizeof entry);
        const uint64_t from = at + entry.header_size;
        if (entry.header_size < sizeof entry ||
            !PROOF(fatbin_entry_is_readable, view_holds(view, from, entry.size))) {
            contents->doubtful = true;
            break;
        }
        struct view part = view_part(view, from, entry.size);
        if (entry.kind == FATBIN_ELF && is_elf(&part)) {
            add_elf(contents, image, &part);
            seen = true;
        }
        at = from + entry.size;
    }
    contents->writable |= !seen;
}

static void describe_fatbin(struct image *image, struct view *view) {
    struct fatbin_header header;
    uint64_t size;
    image->kind = IMAGE_FATBIN;
    image->machine = MACHINE_CUDA;
    image->opaque = true; /* PTX and cubins in it are packed as a rule */
    memcpy(&header, view->bytes, sizeof header);
    if (__builtin_add_overflow(header.size, header.header_size, &size) ||
        header.header_size < sizeof header || !view_holds(view, 0, size)) {
        image->damage = "it is shorter than its header says: it is truncated";
        return;
    }
    struct contents contents = {0};
    struct view whole = view_part(view, 0, size);
    read_entries(&contents, image, &whole, header.header_size);
    image->writable = contents.writable;
    image->settable = contents.settable && !contents.writable;
    if (contents.doubtful)
        return;
    image->size = size;
    image->head = sizeof header;
}

/* ---- any image ---- */

static void describe_text(struct image *image, struct view *view) {
    const char *text = (const char *)image->bytes;
    image->kind = IMAGE_TEXT;
    const size_t length = view_text_length(view);
    if (length == SIZE_MAX || !strstr(text, ".version"))
        return;
    image->kind = IMAGE_PTX;
    image->machine = MACHINE_CUDA;
    image->size = length + 1;
    image->head = 1;
    image->sized_by_tables = true; /* by all of it */
    image->writable = ptx_has(text, ".global");
    image->settable = !image->writable && ptx_has(text, ".const");
}

/* HIP reads as many bytes before it knows what it has, and no image has fewer; those that tell a
 * text. */
enum { LOOK = 24, TEXT = 8 };

static bool is_text(const unsigned char *bytes) {
    for (size_t i = 0; i < TEXT && bytes[i]; i++)
        if (bytes[i] >= 127 || (bytes[i] < 32 && !memchr("\t\n\r", bytes[i], 3)))
            return false;
    return bytes[0] != '\0';
}

struct image image_describe(const void *data) {
    struct image image = {.bytes = data, .kind = IMAGE_UNKNOWN};
    struct view view = {.bytes = data, .limit = SIZE_MAX};
    if (!PROOF(first_bytes_are_readable, view_holds(&view, 0, LOOK)))
        image.damage = "no 24 bytes can be read at its address, and it takes more";
    else if (is_elf(&view))
        describe_elf(&image, &view);
    else if (memcmp(data, "CCOB", 4) == 0)
        describe_compressed(&image, &view);
    else if (is_bundle(&view))
        describe_bundle(&image, &view);
    else if (memcmp(data, "BC\xC0\xDE", 4) == 0)
        image.kind = IMAGE_BITCODE;
    else if (is_fatbin(&view))
        describe_fatbin(&image, &view);
    else if (is_text(data))
        describe_text(&image, &view);
    return image;
}

bool image_lies_at_by_parts(const struct image *image, const void *data) {
    switch (image->kind) {
    case IMAGE_PTX: /* there may be a shorter one at `data` */
        return strcmp((const char *)image->bytes, data) == 0;
    case IMAGE_BUNDLE:
        return bundle_table_lies_at(image, data) && memcmp(image->bytes, data, image->size) == 0;
    default:
        return elf_tables_lie_at(image, data) && memcmp(image->bytes, data, image->size) == 0;
    }
}

/* 8 bytes a step; only spreads images over buckets, equality is by bytes. */
static inline uint64_t mixed(uint64_t hash, const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* In four lanes, as each step waits for the one before it. */
uint64_t image_hash(const struct image *image) {
    uint64_t lanes[4] = {image->size * 0x9E3779B97F4A7C15u, 1, 2, 3}, hash = 0;
    size_t at = 0;
    for (; at + sizeof lanes <= image->size; at += sizeof lanes)
        for (size_t i = 0; i < 4; i++)
            lanes[i] = mixed(lanes[i], image->bytes + at + 8 * i);
    for (; at + 8 <= image->size; at += 8)
        lanes[0] = mixed(lanes[0], image->bytes + at);
    for (size_t i = 0; i < 4; i++)
        hash = mixed(hash, (const unsigned char *)&lanes[i]);
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

char *image_bundle_targets(const struct image *image, char *text, size_t size) {
    size_t at = BUNDLE_HEAD, used = 0;
    text[0] = '\0';
    if (image->kind != IMAGE_BUNDLE || image->size == 0)
        return text;
    for (uint64_t count = count_of(image->bytes); count > 0; count--) {
        const struct bundle_entry entry = bundle_entry_at(image->bytes, at);
        const char *name = (const char *)image->bytes + at + sizeof entry;
        const char *dashes = memmem(name, entry.name_size, "--", 2);
        at += sizeof entry + entry.name_size;
        if (!dashes || dashes + 2 == name + entry.name_size)
            continue; /* the host's has no target */
        const int length = (int)(name + entry.name_size - (dashes + 2));
        const int added =
            snprintf(text + used, size - used, "%s%.*s", used ? ", " : "", length, dashes + 2);
        if (added < 0 || (size_t)added >= size - used)
            break;
        used += (size_t)added;
    }
    text[used] = '\0';
    return text;
}
