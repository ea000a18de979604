#include "cuhip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A thread holds the lock only for a few instructions, never during a call to the loader or the
 * driver. A call to the loader under start_lock could deadlock with a constructor under dlopen,
 * which holds the loader's lock and may wait for start_lock. Several threads may therefore open the
 * driver concurrently, which is harmless. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static hipError_t outcome;

enum need { REQUIRED, OPTIONAL };

/* Stand-ins for optional functions that the driver lacks. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function" /* stand-ins for required functions */
#define CU_FN(need, name, symbol, params)                                                          \
    static CUresult missing_##name params {                                                        \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "cuda.def"
#undef CU_FN
#pragma GCC diagnostic pop

/* Returns NULL, or the name of a required symbol that the library lacks. */
static const char *resolve(struct cuda_functions *functions, void *library) {
#define CU_FN(need, name, symbol, params)                                                          \
    *(void **)&functions->name = dlsym(library, symbol);                                           \
    if (!functions->name && need == REQUIRED)                                                      \
        return symbol;                                                                             \
    if (!functions->name)                                                                          \
        functions->name = missing_##name;
#include "cuda.def"
#undef CU_FN
    return NULL;
}

/* The paths at which cuhip tries to open the driver, in this order. The loader's configuration may
 * lack the second path, which containers use, and the third path, which WSL uses. */
static const char *const places[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                     "/usr/lib/wsl/lib/libcuda.so.1"};
enum { PLACES = sizeof places / sizeof *places };

/* The loader would block for ever on a FIFO that no process writes. */
static bool is_fifo(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISFIFO(found.st_mode);
}

static bool open_one(struct cuda_functions *functions, const char *path) {
    if (is_fifo(path)) {
        cuhip_say("%s is a FIFO", path);
        return false;
    }
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
    const char *lacking = resolve(functions, library);
    if (lacking)
        cuhip_say("%s has no %s: it is too old, or no libcuda", path, lacking);
    return !lacking;
}

static bool open_driver(struct cuda_functions *functions) {
    const char *named = secure_getenv("MGPU_RT_CUDA"); /* MGPU_RT_CUDA selects code to run */
    if (named && named[0]) {
        if (open_one(functions, named))
            return true;
        const char *reason = dlerror();
        cuhip_say("MGPU_RT_CUDA=%s cannot be used%s%s", named, reason ? ": " : "",
                  reason ? reason : "");
        return false;
    }
    for (size_t i = 0; i < PLACES; i++)
        if (open_one(functions, places[i]))
            return true;
    cuhip_say("NVIDIA's driver was not found: neither the loader's libcuda.so.1 nor %s nor %s. "
              "Install the driver (in a container: run it with --gpus all), or set MGPU_RT_CUDA to "
              "the path of libcuda.so.1",
              places[1], places[2]);
    return false;
}

static hipError_t initialise(int *devices) {
    CUresult result = cuda.Init(0);
    if (result == CUDA_SUCCESS)
        result = cuda.DeviceGetCount(devices);
    if (result != CUDA_SUCCESS)
        return from_cuda(result);
    return *devices > 0 ? hipSuccess : hipErrorNoDevice;
}

static __attribute__((noinline)) hipError_t start(void) {
    struct cuda_functions functions;
    hipError_t error = hipErrorInsufficientDriver;
    int devices = 0;
    if (open_driver(&functions)) {
        pthread_mutex_lock(&start_lock);
        cuda = functions;
        pthread_mutex_unlock(&start_lock);
        error = initialise(&devices);
    }
    pthread_mutex_lock(&start_lock);
    if (!__atomic_load_n(&started, __ATOMIC_RELAXED)) {
        cuda_device_count = devices;
        outcome = error;
    }
    __atomic_store_n(&started, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&start_lock);
    return outcome;
}

hipError_t driver_start(void) {
    return LIKELY(__atomic_load_n(&started, __ATOMIC_ACQUIRE)) ? outcome : start();
}
