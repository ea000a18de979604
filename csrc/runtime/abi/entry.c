/* Defines the exported functions. Each exported function makes one predictable test, and then calls
 * its implementation, which another file defines. A call takes the slow entry if it is the first
 * call, if statistics are on, or if HIP has ended. */
#include "abi/lifecycle.h"
#include "abi/override.h"
#include "driver/report.h"
#include "graphs/build.h"
#include "process/options.h"
#include "telemetry/recording/recorder.h"

/* Returns true if a function only releases objects. Such a call is needless at the end of the
 * process, and may crash in HIP (llvm #190563). */
static bool is_release(enum abi_index function) {
    switch (function) {
    case ABI_mgpuModuleUnload:
    case ABI_mgpuStreamDestroy:
    case ABI_mgpuEventDestroy:
    case ABI_mgpuMemFree:
    case ABI_mgpuMemHostUnregister:
    case ABI_mgpuMemHostUnregisterMemRef:
        return true;
    default:
        return false;
    }
}

static struct advice hip_is_over = {
    .text = "mgpu functions were called after HIP's exit handlers, so they do nothing. Join all "
            "threads before main returns, and link with this library, so that HIP ends after the "
            "program's own destructors"};

/* Begins a call on the slow entry; returns false if the call must be skipped. */
static bool begin_slow(struct call *call) {
    runtime_start();
    call_enter(call);
    if (LIKELY(!override_inside)) /* calls that an override makes are not recorded */
        recorder_begins(&call_now);
    if (LIKELY(!runtime_is(MODE_OVER)))
        return true;
    if (!is_release(call_now.function))
        report_not_made(hipErrorDeinitialized, &hip_is_over);
    return false;
}

static void end_slow(const struct call *outer, const void *result) {
    if (LIKELY(!override_inside)) {
        recorder_ended(&call_now, result);
        call_now = *outer;
    } else {
        call_leave(outer);
    }
}

#define EXPORT __attribute__((visibility("default")))

/* abi.def passes 0 for arguments that no implementation reads. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ABI_TYPE(name) __typeof__(&name)

/* Defines the words of abi.def's last column. */
#define NOTHING .begin = 0
#define STREAM .in_stream = true, .stream = stream
#define CACHE(kind) .cache = 1 + CACHE_##kind
#define CACHED(kind) CACHE(kind), .is_assumed = true

/* Defines the slow entry of a function, and this library's function for the user's runtime. VALUE,
 * SET and ADDRESS are the declaration, the assignment and the address of the result; a function
 * without a result has none. The user's runtime calls the slow entry: if the implementations had a
 * second caller, the compiler would inline less of the fast path. */
#define SLOW(result, name, params, args, VALUE, SET, RESULT, ADDRESS, ...)                         \
    static __attribute__((noinline, cold)) result slow_##name params {                             \
        mgpu_rt_function taken;                                                                    \
        VALUE;                                                                                     \
        if (override_unrecorded(ABI_##name, &taken)) {                                             \
            SET(taken ? (ABI_TYPE(name))taken : impl_##name) args;                                 \
            return RESULT;                                                                         \
        }                                                                                          \
        struct call call = {.function = ABI_##name, .site = call_site, __VA_ARGS__};               \
        if (begin_slow(&call)) {                                                                   \
            taken = override_answer(ABI_##name);                                                   \
            call_assume();                                                                         \
            if (taken != graph_no_answer)                                                          \
                SET(taken ? (ABI_TYPE(name))taken : impl_##name) args;                             \
        }                                                                                          \
        end_slow(&call, ADDRESS);                                                                  \
        return RESULT;                                                                             \
    }                                                                                              \
    static result native_##name params {                                                           \
        const bool before = override_inside;                                                       \
        VALUE;                                                                                     \
        override_inside = true;                                                                    \
        SET slow_##name args;                                                                      \
        override_inside = before;                                                                  \
        return RESULT;                                                                             \
    }

#define MGPU_FN(result, name, params, args, first, last, ...)                                      \
    SLOW(result, name, params, args, result value = {0}, value =, value, &value, __VA_ARGS__)      \
    EXPORT result name params {                                                                    \
        if (LIKELY(load_acquire(&runtime_mode) == 0))                                              \
            return impl_##name args;                                                               \
        call_site = __builtin_return_address(0);                                                   \
        return slow_##name args;                                                                   \
    }
#define MGPU_VOID(name, params, args, first, last, ...)                                            \
    SLOW(void, name, params, args, , , , NULL, __VA_ARGS__)                                        \
    EXPORT void name params {                                                                      \
        if (LIKELY(load_acquire(&runtime_mode) == 0)) {                                            \
            impl_##name args;                                                                      \
        } else {                                                                                   \
            call_site = __builtin_return_address(0);                                               \
            slow_##name args;                                                                      \
        }                                                                                          \
    }
#include "../../abi.def"

mgpu_rt_function mgpu_rt_native(const char *name) {
    static const mgpu_rt_function natives[] = {
#define MGPU_FN(result, name, params, args, first, last, ...) (mgpu_rt_function) native_##name,
#include "../../abi.def"
    };
    const int index = override_index(name);
    return index < ABI_COUNT ? natives[index] : NULL;
}
