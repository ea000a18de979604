/* Keeps HIP's compiler apart from the LLVM of the program.
 *
 * HIP loads a compiler, libamd_comgr. Debian's libamd_comgr is linked with a shared LLVM 15. A JIT
 * such as mlir-runner has an LLVM of its own, whose C++ symbols are global; libMLIR's symbols have
 * no versions. The loader binds HIP's compiler to the program's LLVM symbols, and the process
 * crashes when the program creates its first stream. RTLD_LOCAL does not help: it hides HIP's
 * symbols from the program, but does not hide the program's symbols from HIP. Opening only HIP with
 * RTLD_DEEPBIND does not help either: HIP opens its compiler later, without that flag. So this
 * library opens the compiler before HIP does, with RTLD_DEEPBIND.
 *
 * A separate namespace (dlmopen) would also keep the symbols apart, but has disadvantages. A
 * namespace has a second libc, whose buffered output (printf of kernels) is lost at exit and whose
 * locks break in a forked child. Threads of the program would lack that libc's locale tables, and
 * the process would have two HIPs if the program itself opens HIP.
 *
 * RTLD_DEEPBIND also has a disadvantage. A library that is bound with RTLD_DEEPBIND uses libc's
 * allocator, although the program may use another allocator. The library may then pass memory of
 * the program's allocator, such as a result of strdup, to libc's free. So RTLD_DEEPBIND is used
 * only if an LLVM is present and the program's allocator is libc's. */
#include "driver/hip.h"
#include "driver/report.h"
#include "process/mapped.h"
#include "process/options.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct advice allocator_forbids = {
    .text = "this program contains LLVM, and HIP's compiler may call the program's LLVM instead of "
            "its own. The library cannot prevent this with the allocator %s, so HIP may crash. Run "
            "the program without that allocator"};

/* Returns true if global symbols of LLVM or MLIR are present. mlirContextCreate is a function of
 * MLIR's C interface, which MLIR's Python bindings export. */
static bool llvm_in_sight(void) {
    static const char *const names[] = {"LLVMContextCreate", "_ZN4llvm11raw_ostreamD1Ev",
                                        "_ZN4mlir11MLIRContextD1Ev", "mlirContextCreate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dlsym(RTLD_DEFAULT, names[i]))
            return true;
    return false;
}

/* Returns the file of the allocator in use; NULL if libc's allocator is in use. A sanitizer also
 * replaces libc's allocator, and ends the program if a dlopen uses RTLD_DEEPBIND. `mgpu-rt check`
 * records the calls of malloc, and names the malloc that it calls. */
static const char *foreign_allocator(void) {
    Dl_info info;
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void **recorded = dlsym(RTLD_DEFAULT, "mgpu_rt_recorded_malloc");
    void *allocate = recorded ? *recorded : dlsym(RTLD_DEFAULT, "malloc");
    if (!libc || allocate == dlsym(libc, "malloc"))
        return NULL;
    return dladdr(allocate, &info) ? info.dli_fname : "unknown";
}

static bool compiler_is_mapped(void) {
    char compiler[PATH_MAX];
    return mapped_library("libamd_comgr", compiler, sizeof compiler) != NULL;
}

bool symbols_own(void) {
    const char *asked = options_path_variable("MGPU_RT_TEST_SYMBOLS"); /* own, shared: values for
                                                                        * tests */
    if (asked)
        return strcmp(asked, "own") == 0;
    if (compiler_is_mapped() || !llvm_in_sight())
        return false; /* the symbols are already bound, or there is no LLVM */
    const char *foreign = foreign_allocator();
    if (foreign)
        report_once(&allocator_forbids, foreign);
    return !foreign;
}

/* ---- the compiler ---- */

struct search {
    ElfW(Addr) base;
    char name[64]; /* the compiler's file name; "" if HIP names no compiler */
};

/* HIP's file contains the compiler's name, libamd_comgr.so.2 or libamd_comgr.so.3, as a needed
 * library or as a constant. With a wrong name the library would load a compiler that HIP does not
 * use. */
static void find_compiler_name(struct search *search, const char *begin, size_t size) {
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
            find_compiler_name(search, (const char *)(info->dlpi_addr + segment->p_vaddr),
                               segment->p_filesz);
    }
    return 1;
}

/* Finds the file that HIP's own dlopen would open. The loader compares only the names of open
 * files. So if this library opened a wrong file with the right name, HIP's dlopen would return this
 * wrong file. `path` is the bare name if no folder of HIP's search contains the file. */
static void find_compiler_file(void *library, const char *name, char *path, size_t size) {
    Dl_serinfo head;
    snprintf(path, size, "%s", name);
    if (dlinfo(library, RTLD_DI_SERINFOSIZE, &head) != 0)
        return;
    Dl_serinfo *list = malloc(head.dls_size);
    if (list && dlinfo(library, RTLD_DI_SERINFOSIZE, list) == 0 &&
        dlinfo(library, RTLD_DI_SERINFO, list) == 0)
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

void symbols_open_compiler(void *library) {
    struct link_map *map = NULL;
    struct search search = {0, ""};
    char path[PATH_MAX];
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return;
    search.base = map->l_addr;
    (void)mapped_walk(search_library, &search);
    if (!search.name[0])
        return;
    find_compiler_file(library, search.name, path, sizeof path);
    const bool opened = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND) != NULL;
    report_verbose("HIP's compiler %s: %s", path,
                   opened ? "apart from the LLVM of this program" : dlerror());
}
