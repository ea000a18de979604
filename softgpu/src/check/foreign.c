#include "foreign.h"
#include "order.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long (*function)(long, long, long, long, long, long);

enum {
#define WAIT(name) WAIT_##name,
#include "foreign.def"
#undef WAIT
    NAMES
};

static const char *const names[] = {
#define WAIT(name) #name,
#include "foreign.def"
#undef WAIT
};

static function natives[NAMES];

/* Returns whether the library is the caller. The library's calls do not count as the program's
 * calls. */
static bool is_librarys(void *caller) {
    static void *base;
    Dl_info found;
    if (!base && dladdr(dlsym(RTLD_DEFAULT, "mgpu_rt_native"), &found))
        base = found.dli_fbase;
    return dladdr(caller, &found) && found.dli_fbase == base;
}

#define WAIT(name)                                                                                 \
    static long instead_##name(long a, long b, long c, long d, long e, long f) {                   \
        long result = natives[WAIT_##name](a, b, c, d, e, f);                                      \
        if (!is_librarys(__builtin_return_address(0)))                                             \
            softgpu_order_wait_all(SOFTGPU_EXPLICIT);                                              \
        return result;                                                                             \
    }
#include "foreign.def"
#undef WAIT

static const function insteads[] = {
#define WAIT(name) instead_##name,
#include "foreign.def"
#undef WAIT
};

/* ---- HIP's table of symbols ---- */

struct symbols {
    ElfW(Sym) * table;
    const char *strings;
    size_t count;
};

/* The loader has already relocated the addresses in the dynamic section. Linkers place the string
 * table directly behind the symbol table. */
static struct symbols symbols_of(const struct dl_phdr_info *info) {
    struct symbols found = {0};
    for (int n = 0; n < info->dlpi_phnum; n++) {
        if (info->dlpi_phdr[n].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[n].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_SYMTAB)
                found.table = (ElfW(Sym) *)entry->d_un.d_ptr;
            if (entry->d_tag == DT_STRTAB)
                found.strings = (const char *)entry->d_un.d_ptr;
        }
    }
    uintptr_t begin = (uintptr_t)found.table, end = (uintptr_t)found.strings;
    found.count = begin && end > begin ? (end - begin) / sizeof *found.table : 0;
    return found;
}

static void replace(const struct dl_phdr_info *info, ElfW(Sym) * symbol, unsigned n) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)symbol & ~(page - 1);
    size_t size = (uintptr_t)(symbol + 1) - begin;
    uintptr_t address = info->dlpi_addr + symbol->st_value;
    if (mprotect((void *)begin, size, PROT_READ | PROT_WRITE) != 0)
        return;
    memcpy(&natives[n], &address, sizeof address);
    symbol->st_value = (uintptr_t)insteads[n] - info->dlpi_addr;
    mprotect((void *)begin, size, PROT_READ);
}

static int watch(struct dl_phdr_info *info, size_t size, void *done) {
    (void)size;
    const char *name = strrchr(info->dlpi_name, '/');
    if (!name || strncmp(name, "/libamdhip64.so", 15) != 0)
        return 0;
    struct symbols symbols = symbols_of(info);
    for (size_t s = 0; s < symbols.count; s++)
        for (unsigned n = 0; n < NAMES; n++)
            if (symbols.table[s].st_value && !natives[n] &&
                strcmp(symbols.strings + symbols.table[s].st_name, names[n]) == 0)
                replace(info, &symbols.table[s], n);
    *(bool *)done = true;
    return 1;
}

bool softgpu_foreign_watch(void) {
    static bool done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return false;
    dl_iterate_phdr(watch, &done);
    return done;
}
