#include "cuhip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_functions cuda;
int cuda_device_count;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool started;
static hipError_t outcome;

enum need { REQUIRED, OPTIONAL };

/* What optional functions are where the driver lacks them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function" /* of the required ones */
#define CU_FN(need, name, symbol, params)                                                          \
    static CUresult missing_##name params {                                                        \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "cuda.def"
#undef CU_FN
#pragma GCC diagnostic pop

/* NULL, or the symbol of a required function that the library lacks. */
static const char *resolve(void *library) {
#define CU_FN(need, name, symbol, params)                                                          \
    *(void **)&cuda.name = dlsym(library, symbol);                                                 \
    if (!cuda.name && need == REQUIRED)                                                            \
        return symbol;                                                                             \
    if (!cuda.name)                                                                                \
        cuda.name = missing_##name;
#include "cuda.def"
#undef CU_FN
    return NULL;
}

/* Where the driver lies that no loader's configuration names: containers, and WSL. */
static const char *const places[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                     "/usr/lib/wsl/lib/libcuda.so.1"};
enum { PLACES = sizeof places / sizeof *places };

static bool open_one(const char *path) {
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
    const char *lacking = resolve(library);
    if (lacking)
        cuhip_say("%s has no %s: it is too old, or no libcuda", path, lacking);
    return !lacking;
}

static bool open_driver(void) {
    const char *named = getenv("MGPU_RT_CUDA");
    if (named && named[0]) {
        if (open_one(named))
            return true;
        const char *reason = dlerror();
        cuhip_say("MGPU_RT_CUDA=%s cannot be used%s%s", named, reason ? ": " : "",
                  reason ? reason : "");
        return false;
    }
    for (size_t i = 0; i < PLACES; i++)
        if (open_one(places[i]))
            return true;
    cuhip_say("NVIDIA's driver was not found: neither the loader's libcuda.so.1 nor %s nor %s. "
              "Install the driver (in a container: run it with --gpus all), or set MGPU_RT_CUDA to "
              "the path of libcuda.so.1",
              places[1], places[2]);
    return false;
}

static hipError_t start(void) {
    if (!open_driver())
        return hipErrorInsufficientDriver;
    CUresult result = cuda.Init(0);
    if (result == CUDA_SUCCESS)
        result = cuda.DeviceGetCount(&cuda_device_count);
    if (result != CUDA_SUCCESS)
        return from_cuda(result);
    return cuda_device_count > 0 ? hipSuccess : hipErrorNoDevice;
}

hipError_t driver_start(void) {
    if (LIKELY(__atomic_load_n(&started, __ATOMIC_ACQUIRE)))
        return outcome;
    pthread_mutex_lock(&start_lock);
    if (!started)
        outcome = start();
    __atomic_store_n(&started, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&start_lock);
    return outcome;
}
