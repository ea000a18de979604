/* The exported functions, generated from api.def. Each exported function costs the driver's call,
 * one test, and one store of the thread's last error. */
#include "cuhip.h"

#define ENTER_DRIVER driver_start
#define ENTER_CONTEXT context_enter

#define HIP_FN(need, name, params, expression)                                                     \
    __attribute__((visibility("default"))) hipError_t name params;                                 \
    hipError_t name params {                                                                       \
        const hipError_t error = ENTER_##need();                                                   \
        return thread_state.last = LIKELY(!error) ? (expression) : error;                          \
    }
#include "api.def"
