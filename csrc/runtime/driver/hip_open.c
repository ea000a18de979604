#include "driver/hip_open.h"
#include "driver/hip_search.h"
#include "driver/report.h"
#include "driver/symbols.h"
#include "mgpu.h"
#include "process/mapped.h"
#include "proof.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct advice not_found = {
    .text = "no HIP library (libamdhip64) was found, so nothing runs on a GPU. Tried: %s. Set "
            "MGPU_RT_HIP to its path, or ROCM_PATH to ROCm's directory; with no AMD GPU: `mgpu-rt "
            "run --device softgpu -- PROGRAM`; on NVIDIA's GPUs: --device cuda",
    .leads_to = NOTHING_RUNS};
static struct advice not_as_named = {
    .text = "no HIP library, so nothing runs on a GPU: MGPU_RT_HIP names %s. Set MGPU_RT_HIP to "
            "the path of a libamdhip64, or unset it, so that mgpu_rt searches for HIP",
    .leads_to = NOTHING_RUNS};
static struct advice two_of_them = {
    .text = "this process has two HIP libraries: the program uses %s, and mgpu_rt uses %s. Each "
            "library knows only its own streams and memory: unset MGPU_RT_HIP, or set it to the "
            "first path"};
static struct advice lacks_function = {
    .text = "%s has no function %s: calls of that function return hipErrorNotSupported"};

/* ---- what a library may lack ---- */

#define HIP_FN(need, name, params, args)                                                           \
    static hipError_t missing_##name params {                                                      \
        report_once(&lacks_function, hip_path(), "hip" #name);                                     \
        return hipErrorNotSupported;                                                               \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "driver/hip.def"
#pragma GCC diagnostic pop
#undef HIP_FN

const struct hip_functions hip_missing = {
#define HIP_FN(need, name, params, args) .name = missing_##name,
#include "driver/hip.def"
#undef HIP_FN
};

enum need { REQUIRED, OPTIONAL };

/* Fills the table of functions. Returns NULL, or the name of a required function that the library
 * lacks. */
static const char *resolve(struct hip_functions *functions, void *library) {
#define HIP_FN(need, name, params, args)                                                           \
    *(void **)&functions->name = dlsym(library, "hip" #name);                                      \
    if (!functions->name && need == REQUIRED)                                                      \
        return "hip" #name;                                                                        \
    if (!functions->name)                                                                          \
        functions->name = hip_missing.name;
#include "driver/hip.def"
#undef HIP_FN
    *(void **)&functions->GetErrorName = dlsym(library, "hipGetErrorName");
    return functions->GetErrorName ? NULL : "hipGetErrorName";
}

/* HIP depends on ROCr, so the search from HIP's handle also finds ROCr's function. */
static void resolve_witness(struct witness_functions *functions, void *library) {
    *(void **)&functions->set_tracer = dlsym(library, "hipRegisterTracerCallback");
    *(void **)&functions->name = dlsym(library, "hipApiName");
    *(void **)&functions->ask_rocr = dlsym(library, "hsa_system_get_info");
}

/* The libraries that hip_open has tried so far, as text for a message, and the way in which
 * hip_open opens a library. */
struct attempts {
    char text[2048];
    size_t used;
    bool own; /* HIP's symbols are bound within HIP */
};

static void note(struct attempts *attempts, const char *name, const char *reason) {
    const int length =
        snprintf(attempts->text + attempts->used, sizeof attempts->text - attempts->used,
                 "%s%s%s%s%s", attempts->used ? ", " : "", name, reason ? " (" : "",
                 reason ? reason : "", reason ? ")" : "");
    if (length > 0 && attempts->used + (size_t)length < sizeof attempts->text)
        attempts->used += (size_t)length;
}

/* Finds the path of HIP, according to the loader. */
static void read_path(struct hip_library *library, void *handle, const char *name) {
    struct link_map *map = NULL;
    const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
    if (known || name != library->path)
        snprintf(library->path, sizeof library->path, "%s", known ? map->l_name : name);
}

static bool accept(struct hip_library *library, void *handle, const char *name,
                   struct attempts *attempts) {
    const char *lacking = resolve(&library->functions, handle);
    if (lacking) {
        char reason[128];
        snprintf(reason, sizeof reason, "it has no function %s", lacking);
        note(attempts, name, reason);
        return false;
    }
    if (attempts->own)
        symbols_open_compiler(handle);
    cuda_resolve(&library->cuda, handle);
    resolve_witness(&library->witness, handle);
    read_path(library, handle, name);
    return true;
}

/* The loader would block for ever on a FIFO that no process writes. */
static bool is_fifo(const char *name) {
    struct stat found;
    return strchr(name, '/') && stat(name, &found) == 0 && S_ISFIFO(found.st_mode);
}

static bool try_name(struct hip_library *library, const char *name, struct attempts *attempts) {
    if (DOUBT(library_is_a_fifo, is_fifo(name))) {
        note(attempts, name, "it is a FIFO");
        return false;
    }
    void *handle = dlopen(name, symbols_flags(attempts->own));
    if (!handle) {
        /* If the file is absent, the message lists only the file's name, because the loader's
         * reason would just repeat the name. */
        const char *error = dlerror();
        const bool absent = error && strstr(error, "No such file");
        note(attempts, name, absent ? NULL : error);
        return false;
    }
    if (accept(library, handle, name, attempts))
        return true;
    dlclose(handle);
    return false;
}

static bool try_all(struct hip_library *library, struct attempts *attempts) {
    void *mapped = mapped_library("libamdhip64.so", library->path, sizeof library->path);
    if (mapped && accept(library, mapped, library->path, attempts))
        return true;
    struct hip_candidates found = hip_search();
    bool opened = false;
    if (found.incomplete) { /* the missing file may be the one that the user has named */
        hip_search_free(&found);
        found = hip_search();
    }
    for (size_t i = 0; i < found.count && !opened; i++) {
        opened = try_name(library, found.list[i].path, attempts);
        if (opened)
            report_verbose("chose the %s of %zu HIP libraries, found by %s", i ? "next" : "first",
                           found.count, found.list[i].place);
    }
    if (!found.count)
        note(attempts, hip_places, NULL);
    hip_search_free(&found);
    return opened;
}

/* ---- two in one process ---- */

static void look_for_another(const struct hip_library *library) {
    char path[1024];
    if (mapped_find("libamdhip64.so", library->path, path, sizeof path))
        report_once(&two_of_them, path, library->path);
}

bool hip_open(struct hip_library *library, const char *wanted, bool silent) {
    struct attempts attempts = {.used = 0, .own = symbols_own()};
    const bool found =
        wanted[0] ? try_name(library, wanted, &attempts) : try_all(library, &attempts);
    if (!found) {
        library->path[0] = '\0';
        if (!silent)
            report_once(wanted[0] ? &not_as_named : &not_found, attempts.text);
        return false;
    }
    look_for_another(library);
    return true;
}
