/* Finds the symbol at an address in the file that the loader has mapped there. Limits each read and
 * the sum of all reads, because another file of any size may have replaced the mapped file. */
#include "atomics.h"
#include "process/mapped.h"
#include "process/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 256, HEADERS = 4096 }; /* HEADERS: an object's first bytes, which the loader maps */
enum { MOST_WORK = 1 << 28, READ = 256 }; /* READ: bytes that count as the cost of each read call */
static uint64_t work;                     /* bytes that all look-ups of the process have read, and
                                           * the costs of the read calls */

static bool read_at(int file, void *to, size_t size, uint64_t offset) {
    return offset <= INT64_MAX && add_fetch_relaxed(&work, size + READ) <= MOST_WORK &&
           pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

/* Reads the file's header. Returns whether the file has the headers of the object at `base`. */
static bool is_object(int file, const void *base, ElfW(Ehdr) * header) {
    char segments[HEADERS];
    if (!read_at(file, header, sizeof *header, 0) || memcmp(header, base, sizeof *header) != 0)
        return false;
    const size_t size = header->e_phnum * sizeof(ElfW(Phdr));
    return size <= HEADERS && header->e_phoff <= HEADERS - size &&
           read_at(file, segments, size, header->e_phoff) &&
           memcmp(segments, (const char *)base + header->e_phoff, size) == 0;
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

static bool names(const ElfW(Sym) * symbol, uintptr_t value) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_name &&
           ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_value == value;
}

/* Returns the offset of the symbol's name in the string table. Returns 0 if no name is found; a
 * name's offset is never 0. */
static uint32_t find_name(int file, const ElfW(Shdr) * symbols, uintptr_t value) {
    ElfW(Sym) some[STEP];
    for (uint64_t at = 0; at < symbols->sh_size; at += sizeof some) {
        const uint64_t left = symbols->sh_size - at;
        const size_t size = left < sizeof some ? (size_t)left : sizeof some;
        if (!read_at(file, some, size, symbols->sh_offset + at))
            return 0;
        for (size_t i = 0; i < size / sizeof *some; i++)
            if (names(&some[i], value))
                return some[i].st_name;
    }
    return 0;
}

static bool read_name(int file, const ElfW(Ehdr) * header, uintptr_t value, uint32_t type,
                      char name[MAPPED_SYMBOL]) {
    ElfW(Shdr) symbols, strings;
    if (!find_symbols(file, header, type, &symbols) ||
        !read_section(file, header, symbols.sh_link, &strings))
        return false;
    const uint32_t at = find_name(file, &symbols, value);
    if (!at || at >= strings.sh_size || strings.sh_offset > (uint64_t)INT64_MAX - at)
        return false;
    const ssize_t size = pread(file, name, MAPPED_SYMBOL, (off_t)(strings.sh_offset + at));
    return size > 0 && memchr(name, '\0', (size_t)size);
}

bool mapped_symbol(const void *address, char name[MAPPED_SYMBOL]) {
    Dl_info info;
    ElfW(Ehdr) header;
    struct link_map *map = NULL;
    if (runtime_forked || !dladdr1(address, &info, (void **)(void *)&map, RTLD_DL_LINKMAP))
        return false;
    const int error = errno; /* the program's */
    const char *path = map->l_name[0] ? map->l_name : "/proc/self/exe";
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const uintptr_t value = (uintptr_t)address - map->l_addr; /* according to the file */
    const bool found = file >= 0 && is_object(file, info.dli_fbase, &header) &&
                       (read_name(file, &header, value, SHT_SYMTAB, name) ||
                        read_name(file, &header, value, SHT_DYNSYM, name));
    if (file >= 0)
        close(file);
    errno = error;
    return found;
}
