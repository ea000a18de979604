#include "exclusive.h"
#include "mapped.h"
#include "runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static bool shared_from_start = true; /* until a thread has looked and found nothing */
static bool shared_since;
static unsigned long long seen; /* loads that the last walk knew of, + 1 */

/* LLVM's own runtimes need HIP, but their calls come here instead. */
static bool is_replaced(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "libmlir_rocm_runtime.so", 23) == 0 ||
           strncmp(name, "libmlir_cuda_runtime.so", 23) == 0;
}

/* The loader has turned the string table's offset into an address, save for objects that it maps
 * read-only (the vdso). */
static const char *strings_of(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_STRTAB)
            return (const char *)(dynamic->d_un.d_ptr < info->dlpi_addr
                                      ? dynamic->d_un.d_ptr + info->dlpi_addr
                                      : dynamic->d_un.d_ptr);
    return NULL;
}

static bool needs_hip(const struct dl_phdr_info *info) {
    const ElfW(Dyn) *dynamic = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const char *strings = dynamic ? strings_of(info, dynamic) : NULL;
    for (; strings && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_NEEDED &&
            strncmp(strings + dynamic->d_un.d_val, "libamdhip64.so", 14) == 0)
            return true;
    return false;
}

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    bool *found = data;
    *found = *found || (needs_hip(info) && !is_replaced(info->dlpi_name));
    return *found;
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds + 1;
    return 1; /* the first entry says it */
}

/* Threads may make their first calls at once: one that looks later finds the HIP, and the Python,
 * that another has just opened for us. Who finds none is right. */
void exclusive_start(void) {
    char path[4096];
    if (!mapped_library("libamdhip64.so", path, sizeof path) &&
        !dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
        __atomic_store_n(&shared_from_start, false, __ATOMIC_RELEASE);
}

bool exclusive_hip(void) {
    if (options.exclusive_asked >= 0)
        return options.exclusive_asked;
    /* A child of fork would never get the lock below if a thread held it at the fork. */
    if (__atomic_load_n(&shared_from_start, __ATOMIC_RELAXED) ||
        __atomic_load_n(&shared_since, __ATOMIC_RELAXED) || runtime_forked)
        return false;
    unsigned long long loads = 0;
    dl_iterate_phdr(read_loads, &loads);
    if (LIKELY(loads == __atomic_load_n(&seen, __ATOMIC_ACQUIRE)))
        return true;
    bool found = false;
    dl_iterate_phdr(look, &found);
    if (found)
        __atomic_store_n(&shared_since, true, __ATOMIC_RELAXED);
    __atomic_store_n(&seen, loads, __ATOMIC_RELEASE);
    return !found;
}
