/* The only layer that calls HIP: a table of HIP's functions, filled when the first call needs it.
 *
 * This library is never linked against libamdhip64. libamdhip64 would load ROCm's LLVM into a
 * process that may have another LLVM ("Option 'default' already exists!", rocMLIR #2357). A program
 * that never launches should not pay for loading HIP. */
#ifndef MGPU_RT_HIP_H
#define MGPU_RT_HIP_H

#include "likely.h"
#include "mgpu.h"
#include "process/state.h"

struct hip_functions {
#define HIP_FN(need, name, params, args) hipError_t(*name) params;
#include "driver/hip.def"
    const char *(*GetErrorName)(hipError_t error);
};

/* The functions of this table can be called at any time. Before hip_install, or in a process
 * without HIP, each function returns hipErrorSharedObjectInitFailed. If HIP lacks an optional
 * function, the function in the table returns hipErrorNotSupported. */
extern struct hip_functions hip;

/* The stand-ins for the functions that HIP lacks. */
extern const struct hip_functions hip_missing;

/* The functions that only a library for NVIDIA's GPUs has. Each pointer is NULL unless the library
 * that serves as HIP is csrc/cuhip. */
struct cuda_functions {
#define CUDA_FN(result, name, params) result(*name) params;
#include "driver/cuda.def"
};
extern struct cuda_functions cuda;

static inline bool cuda_present(void) {
    return cuda.jit_level != NULL;
}

/* The functions by which HIP reports calls of its API (witness.h); NULL if HIP lacks a function. */
struct witness_functions {
    void (*set_tracer)(int (*tracer)(int domain, uint32_t operation, void *data));
    const char *(*name)(uint32_t operation);
    int (*ask_rocr)(int attribute, void *value); /* hsa_system_get_info */
};

/* A library that is used as HIP. */
struct hip_library {
    struct hip_functions functions;
    struct cuda_functions cuda;
    struct witness_functions witness;
    void *handle;    /* as dlopen returns it */
    char path[4096]; /* path according to the loader; "" if unknown */
};

/* Finds and opens HIP. If `wanted` (MGPU_RT_HIP) is not empty, HIP is the library with that name.
 * If `wanted` is empty, HIP is the library that rocMLIR shares, or that the process has already
 * mapped. If there is none, HIP is the first usable library of these folders: the folder lib of
 * ROCM_PATH, the loader's folders, /opt/rocm/lib. A usable library has all required functions.
 * Returns false if no library is found; unless `silent` is set, a message on stderr says so once.
 * If the process has then mapped two HIP libraries, a message names the two paths. Several threads
 * may call hip_open at once, because hip_open writes only to *library. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* Returns true if another library may share its HIP. hip_open then calls a function of that
 * library, so the constructors of all libraries must have run. */
bool hip_is_shared(void);

/* ---- symbols.c: keeps HIP's compiler apart from the LLVM of the program ---- */

/* Returns true if HIP's symbols must be bound within HIP: if the program has an LLVM or MLIR whose
 * symbols are global. The caller must call this function before HIP is opened. The function may
 * print advice. */
bool symbols_own(void);

/* Opens the compiler that HIP will load, and binds the compiler's symbols within the compiler. The
 * caller must first have opened HIP, or found HIP in the process. Does nothing if HIP has already
 * loaded a compiler, or uses no compiler. */
void symbols_open_compiler(void *library);

/* ---- what is installed ---- */

/* Makes `hip` call the functions of `library` from now on. */
void hip_install(const struct hip_library *library);

/* Makes each function of `hip` return hipErrorNoDevice from now on, except GetErrorName. For a
 * library that finds no device and crashes in most of its functions. */
void hip_install_without_device(const struct hip_library *library);

/* Returns the path of the installed library; "" if no library is installed. */
const char *hip_path(void);

/* Returns the address of a name in the installed library, or in a library that it depends on; NULL
 * if there is none. */
void *hip_symbol(const char *name);

/* Waits until ROCr's thread has run HIP's code for all commands that have finished so far (rocr.c).
 * HIP's code frees the resources of the commands: streams, kernels, modules. Returns after at most
 * 20 seconds, because the thread may be in a callback of the program. Returns at once if there is
 * no ROCr, for example over NVIDIA's driver. For exit only: not thread-safe. */
void rocr_catch_up(void);

/* Writes an error's name into `text`, or "error 1234" if the error has no name, and returns `text`.
 * Works in a process without HIP, too. */
enum { HIP_ERROR_TEXT = 64 };
const char *hip_error_text(hipError_t error, char text[HIP_ERROR_TEXT]);

/* HIP's functions for calls that statistics (MGPU_RT_STATS) must not count. Set at the start,
 * before driver_calls_watch adds counts and times to the functions of `hip`. */
extern struct hip_functions hip_untimed;

/* The number of devices, queried once; 1 if HIP has reported no device or no number. With one
 * device, calls need not query the current device. */
extern int hip_device_count;

/* Set if HIP has reported that there is no device at all. */
extern bool hip_no_device;

/* HIP's release; 0 if HIP did not report the release, or with MGPU_RT_CACHE=off. */
extern int hip_version;

/* Returns the calling thread's current device. With one device the function makes no query. With
 * several devices the function asks HIP, because the program may have called hipSetDevice itself.
 * HIP then reads a thread-local variable, which takes 10 to 50 ns. */
static inline int hip_current_device(void) {
    int device = 0;
    if (__builtin_expect(hip_device_count > 1, 0) && hip.GetDevice(&device) != hipSuccess)
        device = 0;
    return device;
}

#endif
