/* The outcome of the calling thread's call. The function that knows a part of it writes that part,
 * and the recorder reads it once, when the call has ended. */
#ifndef MGPU_RT_CALL_H
#define MGPU_RT_CALL_H

#include "../../hip_abi.h"

#include <stdbool.h>

struct call_outcome {
    bool begun;       /* else what fails is outside of any call */
    bool overridden;  /* a function of the user's answers it (override.h) */
    bool native;      /* and has called one of this library's */
    hipError_t error; /* of the last failure; hipSuccess if none */
};
extern __thread struct call_outcome call_now __attribute__((tls_model("initial-exec")));

#endif
