/* The exported functions, generated from api.def. In addition to the driver's call, each function
 * costs a test of the thread's state and a store of its last error. */
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
#undef HIP_FN
