#include "mapped.h"
#include "runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct search {
    const char *prefix;
    char *path;
    size_t size;
};

static int compare(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    const struct search *search = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, search->prefix, strlen(search->prefix)) != 0)
        return 0;
    snprintf(search->path, search->size, "%s", info->dlpi_name);
    return 1;
}

void *mapped_library(const char *prefix, char *path, size_t size) {
    struct search search = {prefix, path, size};
    if (!dl_iterate_phdr(compare, &search))
        return NULL;
    return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

bool mapped_home(char *path, size_t size) {
    static const char here; /* any object of this library */
    Dl_info info;
    char file[PATH_MAX];
    if (!dladdr(&here, &info) || !realpath(info.dli_fname, file))
        return false;
    for (int level = 0; level < 3; level++) {
        char *slash = strrchr(file, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    const int length = snprintf(path, size, "%s", file);
    return length > 0 && (size_t)length < size;
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

/* Flags of the dynamic section that bear on the question. */
struct promises {
    bool text_relocations; /* the loader writes to segments that the file calls unwritable */
    bool never_unloaded;
};

static struct promises promises_of(const struct dl_phdr_info *info) {
    struct promises promises = {false, false};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_TEXTREL ||
            (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
            promises.text_relocations = true;
        if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE))
            promises.never_unloaded = true;
    }
    return promises;
}

/* 1: proved; -1: this object holds the bytes and cannot promise; 0: another object holds them. */
static int promise(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    const struct range *range = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (!holds(info, segment, range))
            continue;
        const struct promises promises = promises_of(info);
        const bool program = (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR);
        return !(segment->p_flags & PF_W) && !promises.text_relocations &&
                       (program || promises.never_unloaded)
                   ? 1
                   : -1;
    }
    return 0;
}

/* dl_iterate_phdr takes a lock that the loader holds only while it changes its list, never while it
 * runs constructors. */
bool mapped_for_good(const void *data, size_t size) {
    struct range range = {(uintptr_t)data, size};
    return !runtime_forked && dl_iterate_phdr(promise, &range) == 1;
}
