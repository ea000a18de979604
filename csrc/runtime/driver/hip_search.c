#include "driver/hip_search.h"
#include "process/mapped.h"
#include "process/options.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char stem[] = "libamdhip64.so";

const char hip_places[] =
    "ROCM_PATH, HIP_PATH, the loader's paths and cache, /opt/rocm*, ROCm's Python packages, "
    "CONDA_PREFIX";

enum rank { ROCM_PATH, HIP_PATH, LIBRARY_PATH, INSTALLED };

/* The ways in which the search finds candidates. */
struct place {
    enum rank rank;
    const char *name;
};
#define PLACE(rank, name) (&(const struct place){rank, name})

/* ---- the list ---- */

/* The real name contains the whole version: libamdhip64.so.7 links to libamdhip64.so.7.2.70204.
 * Returns false if memory is missing: the list then lacks this candidate. */
static bool read_version(struct hip_candidate *candidate) {
    char *real = realpath(candidate->path, NULL);
    if (!real && errno == ENOMEM) {
        free(candidate->path);
        return false;
    }
    const char *name = real ? strrchr(real, '/') : NULL;
    if (!name || strncmp(name + 1, stem, sizeof stem - 1) != 0)
        name = strrchr(candidate->path, '/');
    sscanf(name + sizeof stem, ".%d.%d.%d", &candidate->version[0], &candidate->version[1],
           &candidate->version[2]);
    free(real);
    return true;
}

static bool known(const struct hip_candidates *found, const struct stat *file) {
    for (size_t i = 0; i < found->count; i++)
        if (found->list[i].device == file->st_dev && found->list[i].inode == file->st_ino)
            return true;
    return false;
}

/* Adds a file to the list, unless the list already contains the file. The search begins with the
 * places of the best rank. */
static void add_candidate(struct hip_candidates *found, const struct place *place,
                          const char *path) {
    struct stat file;
    if (!path || stat(path, &file) != 0 || !S_ISREG(file.st_mode) || known(found, &file))
        return;
    if (found->count == found->room) {
        const size_t room = found->room ? 2 * found->room : 8;
        struct hip_candidate *list = realloc(found->list, room * sizeof *list);
        if (!list) {
            found->incomplete = true;
            return;
        }
        found->list = list;
        found->room = room;
    }
    struct hip_candidate *candidate = &found->list[found->count];
    *candidate = (struct hip_candidate){strdup(path), place->name, (int)place->rank,
                                        {0, 0, 0},    file.st_dev, file.st_ino};
    if (candidate->path && read_version(candidate))
        found->count++;
    else
        found->incomplete = true;
}

/* Sorts by rank, then newest first, then by name. */
static int best_candidate_first(const void *left, const void *right) {
    const struct hip_candidate *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (int i = 0; i < 3; i++)
        if (a->version[i] != b->version[i])
            return a->version[i] > b->version[i] ? -1 : 1;
    return strcmp(a->path, b->path);
}

/* ---- folders ---- */

/* Returns the words joined to a path; NULL if memory ran out. */
__attribute__((format(printf, 2, 3))) static char *join_path(struct hip_candidates *found,
                                                             const char *format, ...) {
    char *path = NULL;
    va_list words;
    va_start(words, format);
    if (vasprintf(&path, format, words) < 0)
        path = NULL;
    va_end(words);
    found->incomplete |= !path;
    return path;
}

/* The function that is called with each path in a folder. */
typedef void (*visit)(struct hip_candidates *found, const struct place *place, const char *path);

/* Visits the entries of a folder whose names begin with a prefix. */
static void walk(struct hip_candidates *found, const struct place *place, const char *folder,
                 const char *begin, visit visit) {
    DIR *open = folder ? opendir(folder) : NULL;
    found->incomplete |= folder && !open && errno == ENOMEM;
    for (struct dirent *entry; open && (entry = readdir(open));)
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
            char *path = join_path(found, "%s/%s", folder, entry->d_name);
            if (path)
                visit(found, place, path);
            free(path);
        }
    if (open)
        closedir(open);
}

static void search_folder(struct hip_candidates *found, const struct place *place,
                          const char *folder) {
    walk(found, place, folder, stem, add_candidate);
}

static void search_root(struct hip_candidates *found, const struct place *place, const char *root) {
    static const char *const names[] = {"lib", "lib64"};
    for (size_t i = 0; root && root[0] && i < sizeof names / sizeof *names; i++) {
        char *folder = join_path(found, "%s/%s", root, names[i]);
        search_folder(found, place, folder);
        free(folder);
    }
}

/* ---- Python packages ---- */

/* ROCm's wheels install their libraries in _rocm_sdk_core/lib, with versioned names only. */
static void search_packages(struct hip_candidates *found, const struct place *place,
                            const char *packages) {
    char *folder = join_path(found, "%s/_rocm_sdk_core/lib", packages);
    search_folder(found, place, folder);
    free(folder);
}

static void search_python(struct hip_candidates *found, const struct place *place,
                          const char *python) {
    char *packages = join_path(found, "%s/site-packages", python);
    if (packages)
        search_packages(found, place, packages);
    free(packages);
}

/* Searches all Python versions of an environment. */
static void search_environment(struct hip_candidates *found, const struct place *place,
                               const char *root) {
    char *folder = root && root[0] ? join_path(found, "%s/lib", root) : NULL;
    walk(found, place, folder, "python3", search_python);
    free(folder);
}

/* ---- the loader ---- */

static void search_library_path(struct hip_candidates *found) {
    const char *value = options_path_variable("LD_LIBRARY_PATH");
    char *folders = value ? strdup(value) : NULL, *rest = NULL;
    found->incomplete |= value && !folders;
    for (char *folder = folders ? strtok_r(folders, ":;", &rest) : NULL; folder;
         folder = strtok_r(NULL, ":;", &rest))
        search_folder(found, PLACE(LIBRARY_PATH, "LD_LIBRARY_PATH"), folder);
    free(folders);
}

/* Searches the loader's default folders. */
static void search_folders(struct hip_candidates *found, void *handle) {
    Dl_serinfo head;
    if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &head) != 0)
        return;
    Dl_serinfo *list = malloc(head.dls_size);
    found->incomplete |= !list;
    if (list && dlinfo(handle, RTLD_DI_SERINFOSIZE, list) == 0 &&
        dlinfo(handle, RTLD_DI_SERINFO, list) == 0)
        for (unsigned i = 0; i < list->dls_cnt; i++)
            search_folder(found, PLACE(INSTALLED, "the loader's folders"),
                          list->dls_serpath[i].dls_name);
    free(list);
}

static void search_loader(struct hip_candidates *found) {
    Dl_info here;
    void *handle =
        dladdr(hip_places, &here) ? dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (handle)
        search_folders(found, handle);
    if (handle)
        dlclose(handle);
}

/* The loader's cache has several formats, and contains the paths as strings in every format. */
static void search_strings(struct hip_candidates *found, const char *text, size_t size) {
    const char *end = text + size;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), stem, sizeof stem - 1));
         at++) {
        const char *begin = at, *stop = memchr(at, '\0', (size_t)(end - at));
        while (begin > text && begin[-1] != '\0')
            begin--;
        if (*begin == '/' && stop)
            add_candidate(found, PLACE(INSTALLED, "the loader's cache"), begin);
    }
}

static void search_cache(struct hip_candidates *found) {
    struct stat file;
    const int descriptor = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (fstat(descriptor, &file) == 0 && file.st_size > 0) {
        const size_t size = (size_t)file.st_size;
        void *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (text != MAP_FAILED) {
            search_strings(found, text, size);
            munmap(text, size);
        }
    }
    close(descriptor);
}

/* ---- all of them ---- */

struct hip_candidates hip_search(void) {
    static const char packages[] = "ROCm's Python packages";
    char *home = malloc(PATH_MAX);
    struct hip_candidates found = {.incomplete = !home};
    search_root(&found, PLACE(ROCM_PATH, "ROCM_PATH"), options_path_variable("ROCM_PATH"));
    search_root(&found, PLACE(HIP_PATH, "HIP_PATH"), options_path_variable("HIP_PATH"));
    search_library_path(&found);
    search_loader(&found);
    search_cache(&found);
    search_root(&found, PLACE(INSTALLED, "/opt/rocm"), "/opt/rocm");
    walk(&found, PLACE(INSTALLED, "/opt/rocm/core-*"), "/opt/rocm", "core-", search_root);
    walk(&found, PLACE(INSTALLED, "/opt/rocm-*"), "/opt", "rocm-", search_root);
    if (home && mapped_home(home, PATH_MAX))
        search_packages(&found, PLACE(INSTALLED, packages), home);
    search_environment(&found, PLACE(INSTALLED, packages), options_path_variable("VIRTUAL_ENV"));
    search_environment(&found, PLACE(INSTALLED, packages), options_path_variable("CONDA_PREFIX"));
    search_root(&found, PLACE(INSTALLED, "CONDA_PREFIX"), options_path_variable("CONDA_PREFIX"));
    free(home);
    if (found.count)
        qsort(found.list, found.count, sizeof *found.list, best_candidate_first);
    return found;
}

void hip_search_free(struct hip_candidates *found) {
    for (size_t i = 0; i < found->count; i++)
        free(found->list[i].path);
    free(found->list);
    *found = (struct hip_candidates){.list = NULL};
}
