#include "sparse.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static struct advice no_hipsparse = {
    .text = "hipSPARSE (libhipsparse) was not found, so nothing is computed with sparse matrices. "
            "Install the package hipsparse of the same ROCm as HIP (Debian's package is "
            "libhipsparse0), or add its folder to LD_LIBRARY_PATH"};
static struct advice no_cusparse = {
    .text = "cuSPARSE (libcusparse) was not found, so nothing is computed with sparse matrices. "
            "Install CUDA's package libcusparse or Python's package nvidia-cusparse, or add the "
            "library's folder to LD_LIBRARY_PATH"};
static struct advice needs_another_hip = {
    .text =
        "%s needs another HIP than %s, which mgpu_rt uses: install hipSPARSE from the same ROCm"};
static struct advice sparse_too_old = {
    .text = "%s lacks a function that mgpu_rt needs: nothing is computed with sparse matrices. "
            "Install ROCm 5 or CUDA 11.3, or later"};
static struct advice sparse_lacks = {.text =
                                         "%s lacks the function %s%s: the matrix was not created"};

/* The libraries that this process has opened. */
static struct {
    const char *title, *lower, *upper;
    const char *(*error_text)(int status);
    char path[PATH_BYTES];
} opened;

enum need { REQUIRED, OPTIONAL };

/* ---- without a library, or without one of its functions ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define SPARSE_FN(need, name, params, args)                                                        \
    static int no_sparse_##name params {                                                           \
        return SPARSE_NO_LIBRARY;                                                                  \
    }                                                                                              \
    static int lacks_sparse_##name params {                                                        \
        host->report_once(&sparse_lacks, opened.path, opened.lower, #name);                        \
        return SPARSE_NOT_SUPPORTED;                                                               \
    }
#include "sparse.def"
#pragma GCC diagnostic pop

/* ---- one library ---- */

static struct sparse_functions unmarked = {
#define SPARSE_FN(need, name, params, args) .name = no_sparse_##name,
#include "sparse.def"
};

/* hipSPARSE calls HIP for the library. */
#define SPARSE_FN(need, name, params, args)                                                        \
    static int marked_##name params {                                                              \
        host->witness_delegate(true);                                                              \
        const int status = unmarked.name args;                                                     \
        host->witness_delegate(false);                                                             \
        return status;                                                                             \
    }
#include "sparse.def"

const struct sparse_functions sparse = {
#define SPARSE_FN(need, name, params, args) .name = marked_##name,
#include "sparse.def"
};

/* Fills the table; returns false if the library lacks a required function. */
static bool resolve_sparse(void *library, const char *prefix) {
    char symbol[64];
    struct sparse_functions found;
#define SPARSE_FN(need, name, params, args)                                                        \
    snprintf(symbol, sizeof symbol, "%s" #name, prefix);                                           \
    *(void **)&found.name = dlsym(library, symbol);                                                \
    if (!found.name && need == REQUIRED)                                                           \
        return false;                                                                              \
    if (!found.name)                                                                               \
        found.name = lacks_sparse_##name;
#include "sparse.def"
    unmarked = found;
    return true;
}

/* These libraries contain no LLVM, so RTLD_LOCAL suffices to separate them from the program
 * (symbols.c). The libraries find HIP by its SONAME, because HIP is open. */
static void *open_file(const char *folder, const char *name) {
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "", name);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void note_path(void *library, const char *name) {
    struct link_map *map = NULL;
    const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map;
    snprintf(opened.path, sizeof opened.path, "%s", known ? map->l_name : name);
}

/* ---- hipSPARSE ---- */

/* Returns hipSPARSE's SONAME for HIP's major version; the plain name if the version is unknown. */
static const char *hipsparse_name(void) {
    static const char *const names[] = {
        [5] = "libhipsparse.so.0", [6] = "libhipsparse.so.1", [7] = "libhipsparse.so.4"};
    int version = 0;
    (void)host->hip->RuntimeGetVersion(&version); /* 0: unknown */
    const unsigned major = (unsigned)version / 10000000;
    return major >= 5 && major < sizeof names / sizeof *names ? names[major] : "libhipsparse.so";
}

/* Returns false if the library comes from another ROCm release: it has then loaded its own HIP,
 * which does not know this library's streams. */
static bool serves_this_hip(void) {
    char other[PATH_BYTES];
    if (!host->mapped_find("libamdhip64.so", host->hip_path(), other, sizeof other))
        return true;
    host->report_once(&needs_another_hip, opened.path, host->hip_path());
    return false;
}

static void *open_beside_hip(const char *name) {
    char folder[PATH_BYTES];
    const char *slash = strrchr(host->hip_path(), '/');
    const int length = slash ? (int)(slash - host->hip_path()) : 0;
    snprintf(folder, sizeof folder, "%.*s", length, host->hip_path());
    return slash ? open_file(folder, name) : NULL;
}

static void *open_hipsparse(void) {
    const char *name = hipsparse_name();
    const bool had_another = !serves_this_hip();
    void *library = host->mapped_library("libhipsparse.so", opened.path, sizeof opened.path);
    if (!library)
        library = open_beside_hip(name);
    if (!library)
        library = open_file("", name);
    if (!library)
        return NULL;
    note_path(library, name);
    if (had_another || serves_this_hip())
        return library;
    dlclose(library);
    return NULL;
}

/* ---- NVIDIA's ---- */

/* Opens an NVIDIA library from the loader's folders, CUDA's folder, or the folders of Python's
 * packages. */
static void *open_nvidia(const char *name, const char *package) {
    char folder[PATH_BYTES], home[PATH_MAX];
    const char *cuda_path = host->options_path_variable("CUDA_PATH");
    void *library = open_file("", name);
    snprintf(folder, sizeof folder, "%s/lib64", cuda_path ? cuda_path : "/usr/local/cuda");
    if (!library)
        library = open_file(folder, name);
    if (library || !host->mapped_home(home))
        return library;
    if (snprintf(folder, sizeof folder, "%s/nvidia/%s/lib", home, package) < (int)sizeof folder)
        library = open_file(folder, name);
    return library;
}

static void *open_cusparse(void) {
    static const char *const names[] = {"libcusparse.so.12", "libcusparse.so.13",
                                        "libcusparse.so.11", "libcusparse.so"};
    void *library = host->mapped_library("libcusparse.so", opened.path, sizeof opened.path);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = open_nvidia(names[i], "cusparse");
        if (!library)
            library = open_nvidia(names[i], "cu13");
    }
    if (library)
        note_path(library, names[0]);
    return library;
}

/* ---- opening ---- */

static pthread_once_t sparse_once = PTHREAD_ONCE_INIT;
static bool sparse_is_open;

static void open_sparse(void) {
    char symbol[64];
    const bool is_cuda = host->cuda_present();
    opened.title = is_cuda ? "cuSPARSE" : "hipSPARSE";
    opened.lower = is_cuda ? "cusparse" : "hipsparse";
    opened.upper = is_cuda ? "CUSPARSE" : "HIPSPARSE";
    void *library = is_cuda ? open_cusparse() : open_hipsparse();
    if (!library)
        return;
    if (!resolve_sparse(library, opened.lower)) {
        host->report_once(&sparse_too_old, opened.path);
        return;
    }
    snprintf(symbol, sizeof symbol, "%sGetErrorString", opened.lower);
    *(void **)&opened.error_text = dlsym(library, symbol);
    sparse_is_open = true;
    (*host->register_exit)();
    host->report_verbose("%s: %s", opened.title, opened.path);
}

bool sparse_open(void) {
    (void)pthread_once(&sparse_once, open_sparse);
    return sparse_is_open;
}

/* ---- failures ---- */

/* The statuses of either library, and the HIP errors that are nearest to them, for
 * mgpu_rt_take_error. */
static const struct {
    const char *words;
    hipError_t error;
} statuses[] = {{"success", hipSuccess},
                {"the library was not initialized", hipErrorNotInitialized},
                {"resource allocation failed", hipErrorOutOfMemory},
                {"invalid value", hipErrorInvalidValue},
                {"the device's architecture lacks a feature", hipErrorUnknown},
                {"access to device memory failed", hipErrorUnknown},
                {"the program failed to execute on the device", hipErrorLaunchFailure},
                {"an internal operation failed", hipErrorUnknown},
                {"the matrix type is not supported", hipErrorNotSupported},
                {"zero pivot", hipErrorUnknown},
                {"the operation is not supported", hipErrorNotSupported},
                {"insufficient resources", hipErrorUnknown}};

void sparse_failed(const char *expression, int status, struct advice *advice) {
    char text[512];
    const char *words = "<unknown>";
    hipError_t error = hipErrorUnknown;
    snprintf(text, sizeof text, expression, opened.lower, opened.upper);
    if (status >= 0 && (size_t)status < sizeof statuses / sizeof *statuses) {
        words = statuses[status].words;
        error = statuses[status].error;
    }
    if (status == SPARSE_NO_LIBRARY) {
        words = "library not found";
        error = hipErrorSharedObjectInitFailed;
        advice = host->cuda_present() ? &no_cusparse : &no_hipsparse;
    }
    host->report_failure_in(opened.title, text,
                            opened.error_text ? opened.error_text(status) : words, error, advice);
}
