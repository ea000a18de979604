/* Finds AMD's compiler library and forwards calls to that library. */
#include "comgr.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "libamd_comgr.so.2"
#define EXPORTED __attribute__((visibility("default")))

/* Each function of AMD's library has at most six parameters, all in registers: handles, numbers and
 * pointers. */
typedef uint64_t word;
typedef word function(word, word, word, word, word, word);

enum {
#define COMGR_FORWARD(name) AT_##name,
#include "functions.def"
#undef COMGR_FORWARD
    FUNCTIONS
};

static const char *const names[] = {
#define COMGR_FORWARD(name) #name,
#include "functions.def"
#undef COMGR_FORWARD
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static function *functions[FUNCTIONS];
static struct comgr amd;
static bool found;

/* Identifies softgpu's library. open_in() rejects a library with this symbol, so that softgpu's
 * library never forwards calls to a copy of itself. */
EXPORTED const char softgpu_comgr[] = NAME;

/* ---- where AMD's is ---- */

static int note_hip(struct dl_phdr_info *info, size_t size, void *path) {
    (void)size;
    const bool is_hip = strstr(info->dlpi_name, "/libamdhip64.so") != NULL;
    if (is_hip)
        snprintf(path, PATH_MAX, "%s", info->dlpi_name);
    return is_hip;
}

/* HIP's compiler must not bind to symbols of an LLVM in the program
 * (csrc/runtime/driver/symbols.c). A program with its own allocator cannot use RTLD_DEEPBIND. */
static int binding(void) {
    const char *asked = getenv("MGPU_RT_TEST_SYMBOLS");
    if (asked && strcmp(asked, "shared") == 0)
        return 0;
    if (asked && strcmp(asked, "own") == 0)
        return RTLD_DEEPBIND;
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return libc && dlsym(RTLD_DEFAULT, "malloc") == dlsym(libc, "malloc") ? RTLD_DEEPBIND : 0;
}

static void *open_in(const char *folder, size_t length) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%.*s/" NAME, (int)length, folder) >= (int)sizeof path)
        return NULL;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | binding());
    if (!library || !dlsym(library, "softgpu_comgr"))
        return library;
    dlclose(library);
    return NULL;
}

/* Searches the folders that HIP's own dlopen searches, and then the folder that contains HIP. HIP's
 * dlopen may not search HIP's folder, because the loader may have found HIP through the loader's
 * cache. */
static void *open_amd(void) {
    char path[PATH_MAX] = "";
    Dl_info self;
    if (!dl_iterate_phdr(note_hip, path) && dladdr(softgpu_comgr, &self))
        snprintf(path, sizeof path, "%s", self.dli_fname);
    void *caller = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *library = NULL;
    Dl_serinfo head, *list = NULL;
    if (caller && dlinfo(caller, RTLD_DI_SERINFOSIZE, &head) == 0)
        list = malloc(head.dls_size);
    if (list && dlinfo(caller, RTLD_DI_SERINFOSIZE, list) == 0 &&
        dlinfo(caller, RTLD_DI_SERINFO, list) == 0)
        for (unsigned i = 0; i < list->dls_cnt && !library; i++) {
            const char *folder = list->dls_serpath[i].dls_name;
            library = open_in(folder, strlen(folder));
        }
    free(list);
    const char *end = strrchr(path, '/');
    return library || !end ? library : open_in(path, (size_t)(end - path));
}

/* ---- which it is ---- */

/* Appends the path, size and modification time of the file that contains `symbol`. */
static bool identify(const void *symbol, char *text, size_t room) {
    Dl_info info;
    struct stat file;
    if (!dladdr(symbol, &info) || stat(info.dli_fname, &file) != 0)
        return false;
    const size_t used = strlen(text);
    const int length =
        snprintf(text + used, room - used, "%s %lld %lld.%09ld\n", info.dli_fname,
                 (long long)file.st_size, (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
    return length > 0 && (size_t)length < room - used;
}

static bool get(void *library, const char *name, void *into) {
    void *symbol = dlsym(library, name);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool bind_amd(void *library) {
    bool all = true;
#define BIND(result, name, parameters) all &= get(library, "amd_comgr_" #name, &amd.name);
    COMGR_CALLED(BIND)
#undef BIND
    return all;
}

static void open_once(void) {
    void *library = open_amd();
    if (!library || !bind_amd(library)) {
        fputs("softgpu: HIP's compiler, AMD's " NAME ", was not found beside HIP or in its search "
              "path\n",
              stderr);
        return;
    }
    for (size_t i = 0; i < FUNCTIONS; i++)
        (void)get(library, names[i], &functions[i]);
    const void *llvm = dlsym(library, "LLVMContextCreate");
    if (!identify(dlsym(library, "amd_comgr_do_action"), amd.identity, sizeof amd.identity) ||
        (llvm && !identify(llvm, amd.identity, sizeof amd.identity)))
        amd.identity[0] = '\0';
    found = true;
}

const struct comgr *comgr_amd(void) {
    pthread_once(&once, open_once);
    return found ? &amd : NULL;
}

/* ---- all else ---- */

/* Returns an error; replaces each function that AMD's library lacks. */
static word refuse(word a, word b, word c, word d, word e, word f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    return COMGR_ERROR;
}

static function *find(size_t which) {
    return comgr_amd() && functions[which] ? functions[which] : refuse;
}

#define COMGR_FORWARD(name)                                                                        \
    EXPORTED word name(word a, word b, word c, word d, word e, word f) {                           \
        return find(AT_##name)(a, b, c, d, e, f);                                                  \
    }
#include "functions.def"
