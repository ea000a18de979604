/* Finds HIP and opens it. */
#include "driver/hip.h"
#include "driver/report.h"
#include "process/lines.h"
#include "process/mapped.h"
#include "process/options.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* HIP's file names, newest first. mgpu_rt/_hip_search.py has the same names and folders. */
static const char *const names[] = {"libamdhip64.so.8", "libamdhip64.so.7", "libamdhip64.so.6",
                                    "libamdhip64.so.5", "libamdhip64.so"};

static struct advice not_found = {
    .text =
        "no HIP library (libamdhip64) was found, so nothing runs on a GPU. Tried: ROCM_PATH, the "
        "loader's paths, /opt/rocm%s. Set MGPU_RT_HIP to its path, or ROCM_PATH to ROCm's "
        "directory; with no AMD GPU: `mgpu-rt run --device softgpu -- PROGRAM`; on NVIDIA's "
        "GPUs: --device cuda",
    .leads_to = NOTHING_RUNS};
static struct advice not_as_named = {
    .text = "no HIP library, so nothing runs on a GPU: MGPU_RT_HIP names %s%s. Set MGPU_RT_HIP "
            "to the path of a libamdhip64, or unset it, so that mgpu_rt searches for HIP",
    .leads_to = NOTHING_RUNS};
static struct advice two_of_them = {
    .text = "this process has two HIP libraries: the program uses %s, and mgpu_rt uses %s. Unless "
            "one forwards to the other, each knows only its own streams and memory: unset "
            "MGPU_RT_HIP, or set it to the first path"};

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
    *(void **)&functions->GetErrorName = dlsym(library, "hipGetErrorName");
    return functions->GetErrorName ? NULL : "hipGetErrorName";
}

static void resolve_cuda(struct cuda_functions *functions, void *library) {
#define CUDA_FN(result, name, params)                                                              \
    *(void **)&functions->name = dlsym(library, "mgpu_cuhip_" #name);
#include "driver/cuda.def"
}

/* HIP depends on ROCr, so the search from HIP's handle also finds ROCr's function. */
static void resolve_witness(struct witness_functions *functions, void *library) {
    *(void **)&functions->set_tracer = dlsym(library, "hipRegisterTracerCallback");
    *(void **)&functions->name = dlsym(library, "hipApiName");
    *(void **)&functions->ask_rocr = dlsym(library, "hsa_system_get_info");
}

/* The reasons why libraries cannot be used, as text for a message. */
struct attempts {
    char text[2048];
    bool searching; /* a library that is absent needs no reason */
    bool own;       /* HIP's symbols are bound within HIP */
};

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
        (void)text_append(attempts->text, sizeof attempts->text, "; %s: it has no function %s",
                          name, lacking);
        return false;
    }
    if (attempts->own)
        symbols_open_compiler(handle);
    resolve_cuda(&library->cuda, handle);
    resolve_witness(&library->witness, handle);
    library->handle = handle;
    read_path(library, handle, name);
    return true;
}

static bool try_name(struct hip_library *library, const char *name, struct attempts *attempts) {
    /* RTLD_LOCAL: HIP's LLVM must not provide symbols to another LLVM in this process. */
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL | (attempts->own ? RTLD_DEEPBIND : 0));
    if (handle && accept(library, handle, name, attempts))
        return true;
    if (handle) {
        dlclose(handle);
        return false;
    }
    const char *error = dlerror();
    if (error && !(attempts->searching && strstr(error, "No such file")))
        (void)text_append(attempts->text, sizeof attempts->text, "; %s", error);
    return false;
}

/* Tries HIP's names in a folder, in `below` of that folder; "": in the loader's folders. */
static bool try_folder(struct hip_library *library, const char *folder, const char *below,
                       struct attempts *attempts) {
    bool opened = false;
    for (size_t i = 0; folder && !opened && i < sizeof names / sizeof *names; i++) {
        char path[sizeof library->path] = "";
        opened = text_append(path, sizeof path, "%s%s%s", folder, below, names[i]) &&
                 try_name(library, path, attempts);
    }
    return opened;
}

/* rocMLIR opens HIP in a namespace of its own (dlmopen), and shares it by this function. The walk
 * through the mapped libraries does not see a HIP in another namespace. */
static const char sharing[] = "mlirRocmSystemDetectGetHipHandle";

bool hip_is_shared(void) {
    return dlsym(RTLD_DEFAULT, sharing) != NULL;
}

static void *shared_by_rocmlir(void) {
    void *(*share)(void);
    *(void **)&share = dlsym(RTLD_DEFAULT, sharing);
    return share ? share() : NULL;
}

/* A library that the process already has comes first: two HIPs do not know each other's objects. */
static bool search(struct hip_library *library, struct attempts *attempts) {
    void *shared = shared_by_rocmlir();
    if (shared && accept(library, shared, "the HIP of rocMLIR", attempts))
        return true;
    void *mapped = mapped_library("libamdhip64.so", library->path, sizeof library->path);
    attempts->searching = true;
    return (mapped && accept(library, mapped, library->path, attempts)) ||
           try_folder(library, options_path_variable("ROCM_PATH"), "/lib/", attempts) ||
           try_folder(library, "", "", attempts) ||
           try_folder(library, "/opt/rocm", "/lib/", attempts);
}

/* ---- two in one process ---- */

static void look_for_another(const struct hip_library *library) {
    char path[1024];
    if (mapped_find("libamdhip64.so", library->path, path, sizeof path))
        report_once(&two_of_them, path, library->path);
}

bool hip_open(struct hip_library *library, const char *wanted, bool silent) {
    struct attempts attempts = {.own = symbols_own()};
    const bool found =
        wanted[0] ? try_name(library, wanted, &attempts) : search(library, &attempts);
    if (!found) {
        library->path[0] = '\0';
        if (!silent && wanted[0])
            report_once(&not_as_named, wanted, attempts.text);
        else if (!silent)
            report_once(&not_found, attempts.text);
        return false;
    }
    look_for_another(library);
    return true;
}
