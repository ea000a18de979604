#include "driver/refusal.h"
#include "proof.h"
#include "telemetry/call.h"

/* HIP knows the address of this array neither as a handle nor as device memory. HIP may read
 * the array. */
static char unknown[4096];

/* Returns the error with which HIP has answered a query. If the library has made no query, or if
 * HIP has answered with success, returns the error that HIP usually reports. */
static hipError_t or_known(hipError_t answer, hipError_t known) {
    call_tell(CALL_REFUSED);
    return answer != hipSuccess ? answer : known;
}

/* Returns false over NVIDIA's driver, which keeps no last error that a query could set. */
static bool asks_hip(void) {
    return DOUBT(refusal_is_hips_own, !cuda_present());
}

/* HIP 7 reads memory at the address of a stream's handle, except in launches. */
hipError_t refusal_of_stream(void) {
    const hipStream_t stream = (hipStream_t)(void *)unknown;
    hipError_t answer = hipSuccess;
    if (!asks_hip())
        answer = hipErrorContextIsDestroyed;
    else if (PROOF(hip_reads_no_handle, hip_version < HIP_7))
        answer = hip.StreamQuery(stream);
    else
        answer = hip.ModuleLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    return or_known(answer, hipErrorContextIsDestroyed);
}

/* HIP reads memory at the address of an event's handle: HIP 5.2 in every call, later releases in
 * some calls. */
hipError_t refusal_of_event(void) {
    const hipError_t known = hipErrorInvalidHandle;
    return or_known(asks_hip() ? hip.EventSynchronize(NULL) : known, known);
}

hipError_t refusal_of_module(void) {
    const hipError_t known = hipErrorNotFound;
    return or_known(asks_hip() ? hip.ModuleUnload((hipModule_t)(void *)unknown) : known, known);
}

hipError_t refusal_of_block(void) {
    const hipError_t known = hipErrorInvalidValue;
    return or_known(asks_hip() ? hip.Free(unknown) : known, known);
}
