/* The exported functions. In fast mode a function returns a constant. In record mode the function
 * records the call and emulates HIP. */
#include "calls.h"
#include "kernel.h"

#include "fast.h"
#include "graph.h"
#include "log.h"
#include "mode.h"
#include "stream.h"
#include "tell.h"

/* One argument of a recorded call: its bits, and whether the argument is a string. */
#define VALUE(x)                                                                                   \
    ((struct stub_value){(uint64_t)(uintptr_t)(x),                                                 \
                         _Generic((x), const char *: true, default: false)})

/* VALUES((a, b)) expands to the list of all arguments, each wrapped in VALUE. */
#define VALUES(args)                                                                               \
    APPLY(EACH_OF(UNPACK args, EACH_11, EACH_10, EACH_9, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4,   \
                  EACH_3, EACH_2, EACH_1, unused),                                                 \
          UNPACK args)
#define APPLY(macro, ...) macro(__VA_ARGS__)
#define EACH_OF(...) TWELFTH(__VA_ARGS__)
#define TWELFTH(a, b, c, d, e, f, g, h, i, j, k, l, ...) l
#define UNPACK(...) __VA_ARGS__
#define EACH_1(a) VALUE(a)
#define EACH_2(a, ...) VALUE(a), EACH_1(__VA_ARGS__)
#define EACH_3(a, ...) VALUE(a), EACH_2(__VA_ARGS__)
#define EACH_4(a, ...) VALUE(a), EACH_3(__VA_ARGS__)
#define EACH_5(a, ...) VALUE(a), EACH_4(__VA_ARGS__)
#define EACH_6(a, ...) VALUE(a), EACH_5(__VA_ARGS__)
#define EACH_7(a, ...) VALUE(a), EACH_6(__VA_ARGS__)
#define EACH_8(a, ...) VALUE(a), EACH_7(__VA_ARGS__)
#define EACH_9(a, ...) VALUE(a), EACH_8(__VA_ARGS__)
#define EACH_10(a, ...) VALUE(a), EACH_9(__VA_ARGS__)
#define EACH_11(a, ...) VALUE(a), EACH_10(__VA_ARGS__)

/* Returns the first argument if the function writes a handle or an address through this argument,
 * and NULL otherwise. */
#define OUT(args) OUT_OF(UNPACK args, unused)
#define OUT_OF(...) OUT_OF_FIRST(__VA_ARGS__)
#define OUT_OF_FIRST(a, ...)                                                                       \
    _Generic((a),                                                                                  \
        hipStream_t *: (const void *)(uintptr_t)(a),                                               \
        hipEvent_t *: (const void *)(uintptr_t)(a),                                                \
        hipModule_t *: (const void *)(uintptr_t)(a),                                               \
        hipFunction_t *: (const void *)(uintptr_t)(a),                                             \
        void **: (const void *)(uintptr_t)(a),                                                     \
        default: NULL)

/* Records a call, and evaluates `emulate`, which emulates the function. */
#define RECORD(name, args, emulate)                                                                \
    const struct stub_value call_values[] = {VALUES(args)};                                        \
    hipError_t error;                                                                              \
    size_t number = stub_log_begin(ID_##name, #args, call_values,                                  \
                                   sizeof call_values / sizeof *call_values, &error);              \
    if (error == hipSuccess && stub_devices == 0 && ID_##name != ID_hipGetDeviceCount)             \
        error = hipErrorInvalidDevice;                                                             \
    if (error == hipSuccess) {                                                                     \
        stub_lock();                                                                               \
        error = emulate;                                                                           \
        stub_unlock();                                                                             \
    }                                                                                              \
    return stub_log_end(number, error, OUT(args))

/* Tells of a call, and returns `fast` from it unless the stub records. */
#define BEGIN(function, fast)                                                                      \
    if (__builtin_expect(stub_fast, 1))                                                            \
        return fast;                                                                               \
    stub_tell(function);                                                                           \
    if (!stub_records)                                                                             \
    return fast

#define HIP_CALL(name, params, args, fast)                                                         \
    hipError_t name params;                                                                        \
    hipError_t name params {                                                                       \
        BEGIN(ID_##name, fast);                                                                    \
        RECORD(name, args, emu_##name args);                                                       \
    }
#include "functions.def"
#include "graphs.def"
#undef HIP_CALL

static hipError_t whole_device(enum stub_function function, void (*work)(void)) {
    BEGIN(function, hipSuccess);
    hipError_t error;
    size_t number = stub_log_begin(function, "()", NULL, 0, &error);
    if (error == hipSuccess && stub_devices == 0)
        error = hipErrorInvalidDevice;
    if (error == hipSuccess) {
        stub_lock();
        if (graph_forbids())
            error = hipErrorStreamCaptureUnsupported;
        else
            work();
        stub_unlock();
    }
    return stub_log_end(number, error, NULL);
}

static void wait_all(void) {
    stream_wait_device(current_device());
}

hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceSynchronize(void) {
    return whole_device(ID_hipDeviceSynchronize, wait_all);
}

hipError_t hipDeviceReset(void);
hipError_t hipDeviceReset(void) {
    return whole_device(ID_hipDeviceReset, device_reset);
}

/* The stub has no kernel symbols on the host, so hipLaunchKernel never finds a kernel. */
hipError_t hipLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **params,
                           size_t shared_bytes, hipStream_t stream);
hipError_t hipLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **params,
                           size_t shared_bytes, hipStream_t stream) {
    BEGIN(ID_hipLaunchKernel, hipSuccess);
    RECORD(
        hipLaunchKernel,
        (symbol, grid.x, grid.y, grid.z, block.x, block.y, block.z, params, shared_bytes, stream),
        hipErrorInvalidDeviceFunction);
}

/* A function of HIP 7. csrc/runtime/launch/mgpu_launch.c describes the type of `config`. */
hipError_t hipDrvLaunchKernelEx(const void *config, hipFunction_t function, void **params,
                                void **extra);
hipError_t hipDrvLaunchKernelEx(const void *config, hipFunction_t function, void **params,
                                void **extra) {
    BEGIN(ID_hipDrvLaunchKernelEx, hipSuccess);
    RECORD(hipDrvLaunchKernelEx, (config, function, params, extra),
           kernel_launch_clusters(config, function, params, extra));
}

static hipError_t last_error(enum stub_function function, bool clear) {
    BEGIN(function, hipSuccess);
    hipError_t ignored;
    size_t number = stub_log_begin(function, "()", NULL, 0, &ignored);
    const hipError_t error = stub_last_error(true);
    stub_log_end(number, clear ? hipSuccess : error, NULL);
    return error;
}

hipError_t hipGetLastError(void);
hipError_t hipGetLastError(void) {
    return last_error(ID_hipGetLastError, true);
}

hipError_t hipPeekAtLastError(void);
hipError_t hipPeekAtLastError(void) {
    return last_error(ID_hipPeekAtLastError, false);
}

/* Returns the error's name, which AMD's hipGetErrorName and hipGetErrorString both return. */
static const char *error_name(hipError_t error) {
    switch (error) {
#define HIP_ERROR(code, name)                                                                      \
    case name:                                                                                     \
        return #name;
#include "../../../csrc/hip_errors.def"
    }
    return "hipErrorUnknown";
}

const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorName(hipError_t error) {
    return error_name(error);
}

const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorString(hipError_t error) {
    return error_name(error);
}
