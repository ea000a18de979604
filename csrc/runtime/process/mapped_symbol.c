/* Finds the symbol at an address in the file that the loader has mapped there. Limits each read and
 * the sum of all reads, because another file of any size may have replaced the mapped file. */
#include "atomics.h"
#include "process/mapped.h"
#include "process/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the object that holds the address ---- */

enum { MOST_SEGMENTS = 64, STEP = 256 };

struct object {
    uintptr_t address; /* looked for */
    char path[PATH_MAX];
    uintptr_t value; /* the symbol's address according to the file */
    size_t segments;
    ElfW(Phdr) segment[MOST_SEGMENTS];
};

static bool covers(const struct dl_phdr_info *info, uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - (info->dlpi_addr + segment->p_vaddr) < segment->p_filesz)
            return true;
    }
    return false;
}

static int find_object(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    struct object *object = data;
    if (!covers(info, object->address))
        return 0;
    object->value = object->address - info->dlpi_addr;
    object->segments = info->dlpi_phnum <= MOST_SEGMENTS ? info->dlpi_phnum : 0;
    memcpy(object->segment, info->dlpi_phdr, object->segments * sizeof *object->segment);
    snprintf(object->path, sizeof object->path, "%s",
             info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
    return 1;
}

/* ---- its file ---- */

enum { MOST_WORK = 1 << 28, READ = 256 }; /* READ: bytes that count as the cost of each read call */
static uint64_t work;                     /* bytes that all look-ups of the process have read, and
                                           * the costs of the read calls */

static bool read_at(int file, void *to, size_t size, uint64_t offset) {
    return offset <= INT64_MAX && add_fetch_relaxed(&work, size + READ) <= MOST_WORK &&
           pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

/* Returns whether the file is still the file that the loader has mapped. */
static bool has_segments(int file, const ElfW(Ehdr) * header, const struct object *object) {
    ElfW(Phdr) segment[MOST_SEGMENTS];
    const size_t size = object->segments * sizeof *segment;
    return size && header->e_phnum == object->segments &&
           read_at(file, segment, size, header->e_phoff) &&
           memcmp(segment, object->segment, size) == 0;
}

static bool read_section(int file, const ElfW(Ehdr) * header, size_t number, ElfW(Shdr) * section) {
    return number < header->e_shnum && header->e_shentsize == sizeof *section &&
           read_at(file, section, sizeof *section, header->e_shoff + number * sizeof *section);
}

/* Only .symtab names a static symbol, and a stripped file lacks that table. */
static bool find_symbols(int file, const ElfW(Ehdr) * header, uint32_t type, ElfW(Shdr) * symbols) {
    for (size_t i = 0; i < header->e_shnum; i++)
        if (!read_section(file, header, i, symbols))
            return false;
        else if (symbols->sh_type == type)
            return symbols->sh_entsize == sizeof(ElfW(Sym));
    return false;
}

static bool names(const ElfW(Sym) * symbol, const struct object *object) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_name &&
           ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && object->value == symbol->st_value;
}

/* Returns the offset of the symbol's name in the string table. Returns 0 if no name is found; a
 * name's offset is never 0. */
static uint32_t find_name(int file, const ElfW(Shdr) * symbols, struct object *object) {
    ElfW(Sym) some[STEP];
    for (uint64_t at = 0; at < symbols->sh_size; at += sizeof some) {
        const uint64_t left = symbols->sh_size - at;
        const size_t size = left < sizeof some ? (size_t)left : sizeof some;
        if (!read_at(file, some, size, symbols->sh_offset + at))
            return 0;
        for (size_t i = 0; i < size / sizeof *some; i++)
            if (names(&some[i], object))
                return some[i].st_name;
    }
    return 0;
}

static bool read_name(int file, const ElfW(Ehdr) * header, struct object *object, uint32_t type,
                      char name[MAPPED_SYMBOL]) {
    ElfW(Shdr) symbols, strings;
    if (!find_symbols(file, header, type, &symbols) ||
        !read_section(file, header, symbols.sh_link, &strings))
        return false;
    const uint32_t at = find_name(file, &symbols, object);
    if (!at || at >= strings.sh_size || strings.sh_offset > (uint64_t)INT64_MAX - at)
        return false;
    const ssize_t size = pread(file, name, MAPPED_SYMBOL, (off_t)(strings.sh_offset + at));
    return size > 0 && memchr(name, '\0', (size_t)size);
}

static bool read_symbol(int file, struct object *object, char name[MAPPED_SYMBOL]) {
    ElfW(Ehdr) header;
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
           read_at(file, &header, sizeof header, 0) && has_segments(file, &header, object) &&
           (read_name(file, &header, object, SHT_SYMTAB, name) ||
            read_name(file, &header, object, SHT_DYNSYM, name));
}

static bool find_symbol(struct object *object, char name[MAPPED_SYMBOL]) {
    if (runtime_forked || dl_iterate_phdr(find_object, object) != 1)
        return false;
    const int error = errno; /* the program's */
    const int file = open(object->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool found = file >= 0 && read_symbol(file, object, name);
    if (file >= 0)
        close(file);
    errno = error;
    return found;
}

bool mapped_symbol(const void *address, char name[MAPPED_SYMBOL]) {
    struct object object = {.address = (uintptr_t)address};
    return find_symbol(&object, name);
}
