#include "symbols.h"
#include "runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct advice sanitized = {
    .text = "this program has an LLVM of its own, and the sanitizer in it forbids to keep HIP's "
            "apart (RTLD_DEEPBIND): HIP may crash. Run it without the sanitizer"};

/* What every LLVM exports, what MLIR adds, and the C interface of Python's bindings. */
static bool llvm_in_sight(void) {
    static const char *const names[] = {"LLVMContextCreate", "_ZN4llvm11raw_ostreamD1Ev",
                                        "_ZN4mlir11MLIRContextD1Ev", "mlirContextCreate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dlsym(RTLD_DEFAULT, names[i]))
            return true;
    return false;
}

/* A sanitizer ends the program at a dlopen with RTLD_DEEPBIND. */
static bool has_sanitizer(void) {
    return dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") != NULL;
}

bool symbols_own(void) {
    const bool wanted = strcmp(options.hip_symbols, "own") == 0 ||
                        (strcmp(options.hip_symbols, "shared") != 0 && llvm_in_sight());
    if (wanted && has_sanitizer()) {
        report_once(&sanitized);
        return false;
    }
    return wanted;
}

int symbols_flags(bool own) {
    /* Local: HIP's LLVM must not serve the symbols of another one in this process. */
    return RTLD_LAZY | RTLD_LOCAL | (own ? RTLD_DEEPBIND : 0);
}

/* ---- the compiler ---- */

struct search {
    ElfW(Addr) base;
    char name[64]; /* the compiler's file name; "" if HIP knows none */
};

/* The name stands in HIP itself, as what it needs or as a constant: libamd_comgr.so.2 or .3, by
 * version. Guessing could load one that HIP does not want. */
static void find_name(struct search *search, const char *begin, size_t size) {
    static const char stem[] = "libamd_comgr";
    const char *found = memmem(begin, size, stem, sizeof stem - 1);
    if (!found)
        return;
    const size_t length = strnlen(found, size - (size_t)(found - begin));
    if (length < sizeof search->name && length < size - (size_t)(found - begin))
        memcpy(search->name, found, length + 1);
}

static int search_library(struct dl_phdr_info *info, size_t info_size, void *data) {
    (void)info_size;
    struct search *search = data;
    if (info->dlpi_addr != search->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && !search->name[0]; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags == PF_R)
            find_name(search, (const char *)(info->dlpi_addr + segment->p_vaddr),
                      segment->p_filesz);
    }
    return 1;
}

/* The file that HIP's own dlopen would take: the loader matches what is open by name, so any other
 * would be taken in its stead. `path` is the bare name if no directory of HIP's search has it. */
static void find_file(void *hip, const char *name, char *path, size_t size) {
    Dl_serinfo head;
    snprintf(path, size, "%s", name);
    if (dlinfo(hip, RTLD_DI_SERINFOSIZE, &head) != 0)
        return;
    Dl_serinfo *list = malloc(head.dls_size);
    if (list && dlinfo(hip, RTLD_DI_SERINFOSIZE, list) == 0 &&
        dlinfo(hip, RTLD_DI_SERINFO, list) == 0)
        for (unsigned i = 0; i < list->dls_cnt; i++) {
            char file[PATH_MAX];
            snprintf(file, sizeof file, "%s/%s", list->dls_serpath[i].dls_name, name);
            if (access(file, R_OK) == 0) {
                snprintf(path, size, "%s", file);
                break;
            }
        }
    free(list);
}

void symbols_open_compiler(void *hip) {
    struct link_map *map = NULL;
    struct search search = {0, ""};
    char path[PATH_MAX];
    if (dlinfo(hip, RTLD_DI_LINKMAP, &map) != 0)
        return;
    search.base = map->l_addr;
    dl_iterate_phdr(search_library, &search);
    if (!search.name[0])
        return;
    find_file(hip, search.name, path, sizeof path);
    const bool opened = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND) != NULL;
    report_verbose("HIP's compiler %s: %s", path,
                   opened ? "apart from the LLVM of this program" : dlerror());
}
