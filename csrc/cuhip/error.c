/* Errors: HIP's number for each error of the driver, and HIP's names. */
#include "cuhip.h"

#include <stdarg.h>
#include <stdio.h>

void cuhip_say(const char *format, ...) {
    char line[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    fprintf(stderr, "cuhip: %s\n", line);
}

static const char *name_of(hipError_t error) {
    switch (error) {
#define HIP_ERROR(number, name)                                                                    \
    case number:                                                                                   \
        return #name;
#include "../hip_errors.def"
    default:
        return "hipErrorUnknown";
    }
}

/* Returns the HIP error that is nearest to an error of the driver. Returns 0 if HIP has an error
 * with the same number. */
static hipError_t nearest(CUresult result) {
    switch (result) {
#define HIP_ERROR(number, name) case number:
#include "../hip_errors.def"
        return 0;
    case 34:  /* STUB_LIBRARY */
    case 36:  /* CALL_REQUIRES_NEWER_DRIVER */
    case 803: /* SYSTEM_DRIVER_MISMATCH */
    case 804: /* COMPAT_NOT_SUPPORTED_ON_DEVICE */
        return hipErrorInsufficientDriver;
    case 46:  /* DEVICE_UNAVAILABLE */
    case 102: /* DEVICE_NOT_LICENSED */
        return hipErrorInvalidDevice;
    case 220: /* NVLINK_UNCORRECTABLE */
        return hipErrorECCNotCorrectable;
    case 221: /* JIT_COMPILER_NOT_FOUND */
        return hipErrorSharedObjectInitFailed;
    case 222: /* UNSUPPORTED_PTX_VERSION */
        return hipErrorInvalidKernelFile;
    case 223: /* JIT_COMPILATION_DISABLED */
    case 224: /* UNSUPPORTED_EXEC_AFFINITY */
    case 225: /* UNSUPPORTED_DEVSIDE_SYNC */
    case 800: /* NOT_PERMITTED */
    case 811: /* CDP_NOT_SUPPORTED */
    case 812: /* CDP_VERSION_MISMATCH */
        return hipErrorNotSupported;
    case 226: /* CONTAINED */
    case 703: /* LAUNCH_INCOMPATIBLE_TEXTURING */
    case 714: /* HARDWARE_STACK_ERROR */
    case 715: /* ILLEGAL_INSTRUCTION */
    case 716: /* MISALIGNED_ADDRESS */
    case 717: /* INVALID_ADDRESS_SPACE */
    case 718: /* INVALID_PC */
    case 721: /* TENSOR_MEMORY_LEAK */
        return hipErrorLaunchFailure;
    case 802: /* SYSTEM_NOT_READY */
        return hipErrorNotInitialized;
    case 909: /* TIMEOUT */
        return hipErrorLaunchTimeOut;
    case 912: /* INVALID_CLUSTER_SIZE */
        return hipErrorInvalidConfiguration;
    case 913: /* FUNCTION_NOT_LOADED */
        return hipErrorNotFound;
    default:
        return hipErrorUnknown;
    }
}

/* Prints an error of the driver, once for each number. */
static void say_original(CUresult result, hipError_t error) {
    static unsigned char said[1024];
    const char *name = NULL;
    if (result < 0 || result >= (int)sizeof said ||
        __atomic_exchange_n(&said[result], 1, __ATOMIC_RELAXED))
        return;
    if (cuda.GetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "an error without a name";
    cuhip_say("the driver answered %s (%d); HIP's nearest is %s", name, result, name_of(error));
}

hipError_t error_of_driver(CUresult result) {
    const hipError_t error = nearest(result);
    if (!error)
        return result;
    say_original(result, error);
    return error;
}

/* The last error of a thread is the result of the thread's last call, even if that call has
 * succeeded. AMD's HIP 5.2.3 behaves in the same way. */

__attribute__((visibility("default"))) hipError_t hipGetLastError(void);
hipError_t hipGetLastError(void) {
    const hipError_t error = thread_state.last;
    thread_state.last = hipSuccess;
    return error;
}

__attribute__((visibility("default"))) hipError_t hipPeekAtLastError(void);
hipError_t hipPeekAtLastError(void) {
    return thread_state.last;
}

__attribute__((visibility("default"))) const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorName(hipError_t error) {
    return name_of(error);
}

/* Returns the error's name, as AMD's HIP does. */
__attribute__((visibility("default"))) const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorString(hipError_t error) {
    return name_of(error);
}
