#include "process/mapped.h"
#include "process/state.h"
#include "proof.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Held during a walk, and by a fork. */
static pthread_mutex_t walk_lock = PTHREAD_MUTEX_INITIALIZER;

int mapped_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    pthread_mutex_lock(&walk_lock);
    const int result = dl_iterate_phdr(visit, data);
    pthread_mutex_unlock(&walk_lock);
    return result;
}

void mapped_before_fork(void) {
    pthread_mutex_lock(&walk_lock);
}

void mapped_after_fork(void) {
    pthread_mutex_unlock(&walk_lock);
}

struct wanted {
    const char *prefix, *but;
    char *path;
    size_t size;
};

static int compare_name(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    const struct wanted *wanted = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, wanted->prefix, strlen(wanted->prefix)) != 0 ||
        strcmp(info->dlpi_name, wanted->but) == 0)
        return 0;
    snprintf(wanted->path, wanted->size, "%s", info->dlpi_name);
    return 1;
}

bool mapped_find(const char *prefix, const char *but, char *path, size_t size) {
    struct wanted wanted = {prefix, but, path, size};
    return mapped_walk(compare_name, &wanted) == 1;
}

void *mapped_library(const char *prefix, char *path, size_t size) {
    return mapped_find(prefix, "", path, size) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* ---- the dynamic section ---- */

struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_size;
    const uint32_t *gnu_hash, *hash;
    bool filters; /* this object only stands for another library, in which the loader finds the
                   * symbols */
    bool text_relocations; /* the loader writes to segments that the file marks as read-only */
    bool never_unloaded;
};

/* Returns the address of a table. The loader has replaced the offset of each table by an address,
 * but not in objects that the loader cannot write to (the vdso). */
static const void *table_at(const struct dl_phdr_info *info, ElfW(Addr) value) {
    return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static struct dynamic dynamic_of(const struct dl_phdr_info *info) {
    struct dynamic dynamic = {.symbols = NULL};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum && !entry; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *table = table_at(info, entry->d_un.d_ptr);
        const ElfW(Xword) flags = entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB)
            dynamic.symbols = table;
        else if (entry->d_tag == DT_STRTAB)
            dynamic.strings = table;
        else if (entry->d_tag == DT_STRSZ)
            dynamic.strings_size = flags;
        else if (entry->d_tag == DT_GNU_HASH)
            dynamic.gnu_hash = table;
        else if (entry->d_tag == DT_HASH)
            dynamic.hash = table;
        dynamic.filters |= entry->d_tag == DT_FILTER;
        dynamic.text_relocations |=
            entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (flags & DF_TEXTREL));
        dynamic.never_unloaded |= entry->d_tag == DT_FLAGS_1 && (flags & DF_1_NODELETE);
    }
    return dynamic;
}

/* ---- imports ---- */

/* Returns the index behind the last symbol in GNU's hash table; 0 if the table is empty. */
static size_t end_of_gnu_hash(const uint32_t *head) {
    const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / sizeof *head);
    const uint32_t *chain = buckets + head[0] - head[1];
    uint32_t last = 0;
    for (uint32_t i = 0; i < head[0]; i++)
        if (buckets[i] > last)
            last = buckets[i];
    if (!last)
        return 0;
    while (!(chain[last] & 1))
        last++;
    return last + 1;
}

/* Returns how many symbols come before the last one that may be imported. The caller compares each
 * name's place with the size of the strings. GNU's hash table of the executable also contains the
 * imported functions whose address it takes. Tables of libraries contain none, and begin behind the
 * imported symbols: so the exported symbols of a large library are not read. If no symbol is
 * hashed, GNU's linker writes 1 as the index of the first one. The strings then follow the
 * symbols. */
static size_t count_imports(const struct dynamic *dynamic, bool is_executable) {
    const uint32_t *head = dynamic->gnu_hash;
    const uintptr_t begin = (uintptr_t)dynamic->symbols, end = (uintptr_t)dynamic->strings;
    if (dynamic->hash)
        return dynamic->hash[1];
    const size_t hashed = head && is_executable ? end_of_gnu_hash(head) : 0;
    if (hashed || !head)
        return hashed;
    return head[1] > 1 || end < begin ? head[1] : (end - begin) / sizeof *dynamic->symbols;
}

static int imports(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    const char *prefix = data;
    const struct dynamic dynamic = dynamic_of(info);
    const size_t length = strlen(prefix);
    if (!dynamic.symbols || !dynamic.strings)
        return 0;
    const size_t count = count_imports(&dynamic, !info->dlpi_name || !*info->dlpi_name);
    for (size_t i = 1; i < count; i++)
        if (dynamic.symbols[i].st_shndx == SHN_UNDEF &&
            dynamic.symbols[i].st_name < dynamic.strings_size &&
            strncmp(dynamic.strings + dynamic.symbols[i].st_name, prefix, length) == 0)
            return 1;
    return 0;
}

bool mapped_imports(const char *prefix) {
    return mapped_walk(imports, (void *)(uintptr_t)prefix) == 1;
}

/* ---- definitions ---- */

static uint32_t gnu_hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Returns the symbol that GNU's hash table of an object has for a name; NULL: no such symbol. */
static const ElfW(Sym) * find_symbol(const struct dynamic *dynamic, const char *name) {
    const uint32_t *head = dynamic->gnu_hash; /* head[0]: number of buckets; head[1]: first hashed
                                               * symbol; head[2]: words of the filter */
    if (!head || !dynamic->symbols || !dynamic->strings || !head[0])
        return NULL;
    const uint32_t hash = gnu_hash_of(name);
    const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / sizeof *head);
    const uint32_t *chain = buckets + head[0] - head[1];
    for (uint32_t at = buckets[hash % head[0]]; at >= head[1]; at++) {
        const ElfW(Sym) *symbol = &dynamic->symbols[at];
        if ((chain[at] | 1) == (hash | 1) && strcmp(dynamic->strings + symbol->st_name, name) == 0)
            return symbol;
        if (chain[at] & 1) /* the last symbol of the bucket */
            return NULL;
    }
    return NULL;
}

struct definition {
    const char *name;
    mapped_code address;
};

static int defines(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    struct definition *definition = data;
    const struct dynamic dynamic = dynamic_of(info);
    const ElfW(Sym) *symbol = find_symbol(&dynamic, definition->name);
    if (!symbol || symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        dynamic.filters || find_symbol(&dynamic, "mgpu_rt_version"))
        return 0;
    definition->address = (mapped_code)(info->dlpi_addr + symbol->st_value);
    return 1;
}

mapped_code mapped_function(const char *name) {
    struct definition definition = {name, NULL};
    (void)mapped_walk(defines, &definition);
    return definition.address;
}

static int read_objects(struct dl_phdr_info *info, size_t size, void *data) {
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
        *(unsigned long long *)data = info->dlpi_adds;
    return 1;
}

unsigned long long mapped_objects(void) {
    unsigned long long objects = 0;
    (void)mapped_walk(read_objects, &objects);
    return objects;
}

/* Finds the folder that is some levels above this library's file. */
static bool folder_above(int levels, char path[PATH_MAX]) {
    static const char here; /* any object that belongs to this library */
    Dl_info info;
    if (!dladdr(&here, &info) || !realpath(info.dli_fname, path))
        return false;
    for (int level = 0; level < levels; level++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

bool mapped_beside(const char *name, char *path, size_t size) {
    char folder[PATH_MAX];
    return folder_above(1, folder) && snprintf(path, size, "%s/%s", folder, name) < (int)size;
}

const void *mapped_plugin(const char *name, const char *entry, const void *host) {
    char path[PATH_MAX];
    plugin_entry *found = NULL;
    void *library =
        mapped_beside(name, path, sizeof path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library)
        *(void **)&found = dlsym(library, entry);
    return found ? found(host) : NULL;
}

bool mapped_home(char path[PATH_MAX]) {
    return folder_above(3, path);
}

uint64_t mapped_place(const void *address, char *file, size_t size) {
    Dl_info info;
    struct link_map *object = NULL;
    file[0] = '\0';
    if (runtime_forked || !dladdr1(address, &info, (void **)(void *)&object, RTLD_DL_LINKMAP))
        return (uintptr_t)address;
    if (object->l_name[0]) {
        snprintf(file, size, "%s", object->l_name);
    } else {
        const ssize_t length = readlink("/proc/self/exe", file, size - 1);
        file[length > 0 ? length : 0] = '\0';
    }
    return (uintptr_t)address - object->l_addr;
}

struct range {
    uintptr_t begin, size;
};

static bool holds(const struct dl_phdr_info *info, const ElfW(Phdr) * segment,
                  const struct range *range) {
    const uintptr_t offset = range->begin - (info->dlpi_addr + segment->p_vaddr);
    return segment->p_type == PT_LOAD && offset < segment->p_filesz &&
           range->size <= segment->p_filesz - offset;
}

/* Returns 0 if this object does not contain the bytes. Returns 1 if there is a proof that the bytes
 * never change and are never unmapped, and -1 if there is no such proof. */
static int promise(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    const struct range *range = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (!holds(info, segment, range))
            continue;
        const struct dynamic dynamic = dynamic_of(info);
        const bool program = (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR);
        return PROOF(nobody_writes_there, !(segment->p_flags & PF_W)) &&
                       PROOF(loader_wrote_nothing_there, !dynamic.text_relocations) &&
                       PROOF(object_is_never_unloaded, program || dynamic.never_unloaded)
                   ? 1
                   : -1;
    }
    return 0;
}

/* dl_iterate_phdr takes a lock that the loader holds only while it changes its list, never while it
 * runs constructors. */
bool mapped_for_good(const void *data, size_t size) {
    struct range range = {(uintptr_t)data, size};
    return !runtime_forked && mapped_walk(promise, &range) == 1;
}
