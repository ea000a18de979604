/* The exported functions. Each is one predictable test before its implementation, which is in the
 * file of its concern; statistics, the first call and the time after exit take the slow entry. */
#include "base/abi.h"
#include "base/atomics.h"
#include "base/likely.h"
#include "base/state.h"
#include "hip/report.h"
#include "lifecycle.h"
#include "recording/call_details.h"
#include "recording/recorder.h"

/* Calls that only give back: what is held at the end is freed with the process, and HIP may not
 * bear them any more (llvm #190563). */
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
    .text = "mgpu functions were called after HIP's exit handlers: nothing is done any more. Link "
            "with this library, so that HIP ends after the program's own destructors"};

/* Begins a call on the slow way; false if it is to be left out. */
static bool begin_slow(struct call *call) {
    runtime_start();
    recorder_begins(call);
    if (LIKELY(!runtime_is(MODE_OVER)))
        return true;
    if (!is_release(call->function))
        report_once(&hip_is_over);
    return false;
}

#define EXPORT __attribute__((visibility("default")))

#define MGPU_FN(result, name, params, args, first, last)                                           \
    static __attribute__((noinline, cold)) result slow_##name params {                             \
        struct call call = {.function = ABI_##name, DETAIL_##name};                                \
        result value = {0};                                                                        \
        if (begin_slow(&call))                                                                     \
            value = impl_##name args;                                                              \
        recorder_ended(&call, &value);                                                             \
        return value;                                                                              \
    }                                                                                              \
    EXPORT result name params {                                                                    \
        if (LIKELY(load_acquire(&runtime_mode) == 0))                                              \
            return impl_##name args;                                                               \
        return slow_##name args;                                                                   \
    }
#define MGPU_VOID(name, params, args, first, last)                                                 \
    static __attribute__((noinline, cold)) void slow_##name params {                               \
        struct call call = {.function = ABI_##name, DETAIL_##name};                                \
        if (begin_slow(&call))                                                                     \
            impl_##name args;                                                                      \
        recorder_ended(&call, NULL);                                                               \
    }                                                                                              \
    EXPORT void name params {                                                                      \
        if (LIKELY(load_acquire(&runtime_mode) == 0))                                              \
            impl_##name args;                                                                      \
        else                                                                                       \
            slow_##name args;                                                                      \
    }
#include "../abi.def"
#undef MGPU_FN
#undef MGPU_VOID
