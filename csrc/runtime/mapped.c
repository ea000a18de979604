#include "mapped.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
